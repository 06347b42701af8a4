#!/usr/bin/env bash
# Installs a build into a fresh folder, and builds and runs the README's example there as a stranger would, with
# find_package(weft); and a program for MLX beside it.
# usage: check_consumer.sh SOURCE BUILD
set -euo pipefail

source_dir=$1 build_dir=$2
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
prefix="$here/a prefix"

cmake --install "$build_dir" --prefix "$prefix" >"$here/install.log" || { cat "$here/install.log"; exit 1; }
if grep -rlF "$source_dir" "$prefix" --include='*.cmake' --include='*.h'; then
  echo "the installed files above name the source folder"
  exit 1
fi
cp -r "$source_dir/tests/checks/consumer" "$here/consumer"
cp "$source_dir/examples/readme.cpp" "$here/consumer/main.cpp"
cmake -S "$here/consumer" -B "$here/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
  >"$here/configure.log" || { cat "$here/configure.log"; exit 1; }
cmake --build "$here/build" || exit 1
output=$("$here/build/consumer")
echo "$output"
[[ $output == *loss* ]]
"$here/build/mlx_consumer"
if [ -x "$build_dir/weft" ]; then "$prefix/bin/weft" --version; fi
