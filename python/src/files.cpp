#include <algorithm>
#include <unordered_map>

#include <nanobind/stl/unordered_map.h>

#include "module.h"
#include "tree.h"
#include "weft/export.h"
#include "weft/io.h"

namespace weft::python {

namespace {

using Arrays = std::unordered_map<std::string, array>;

bool is_path(nb::handle file) { return PyUnicode_Check(file.ptr()) || nb::hasattr(file, "__fspath__"); }
std::string path_of(nb::handle file) { return nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(file)); }

/// Returns a reader of what a file object has from its position on.
std::shared_ptr<io::Reader> reader_of(nb::handle file) {
  if (!nb::hasattr(file, "read")) throw nb::type_error("[load] give a path, or an object with read()");
  const auto bytes = nb::cast<nb::bytes>(file.attr("read")());
  return std::make_shared<io::MemoryReader>(std::string(bytes.c_str(), bytes.size()));
}

/// Calls `write` with a path or with a writer in memory, whose bytes then go to the file object.
template <class Write>
void write_to(nb::handle file, const Write& write) {
  if (is_path(file)) return write(path_of(file));
  if (!nb::hasattr(file, "write")) throw nb::type_error("[save] give a path, or an object with write()");
  const auto writer = std::make_shared<io::MemoryWriter>();
  write(std::shared_ptr<io::Writer>(writer));
  file.attr("write")(nb::bytes(writer->bytes().data(), writer->bytes().size()));
}

/// Calls `read` with a path or a reader.
template <class Read>
auto read_from(nb::handle file, const Read& read) {
  return is_path(file) ? read(path_of(file)) : read(reader_of(file));
}

nb::object metadata_object(const GGUFMetaData& value) {
  return std::visit(
      [](const auto& v) -> nb::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>) return nb::none();
        else return nb::cast(v);
      },
      value);
}

GGUFMetaData metadata_value(nb::handle value) {
  if (is_array(value)) return array_of(value);
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  std::vector<std::string> texts;
  if (nb::try_cast(value, texts)) return texts;
  throw std::invalid_argument("[save_gguf] metadata must be arrays, strings or lists of strings");
}

std::string format_of(nb::handle file, const std::optional<std::string>& format) {
  if (format) return *format;
  const std::string name = is_path(file)               ? path_of(file)
                           : nb::hasattr(file, "name") ? nb::cast<std::string>(nb::str(nb::object(file.attr("name"))))
                                                       : "";
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos)
    throw std::invalid_argument("[load] cannot tell the format of \"" + name + "\"; give format=");
  return name.substr(dot + 1);
}

nb::object load_any(nb::handle file, const std::optional<std::string>& given, bool return_metadata,
                    const StreamOrDevice& s) {
  const std::string format = format_of(file, given);
  const auto with_metadata = [&](const nb::object& arrays, const nb::object& metadata) {
    return return_metadata ? nb::object(nb::make_tuple(arrays, metadata)) : arrays;
  };
  const auto plain = [&](const nb::object& arrays) {
    if (return_metadata) throw std::invalid_argument("[load] files of format " + format + " have no metadata");
    return arrays;
  };
  if (format == "npy") return plain(nb::cast(read_from(file, [&](const auto& in) { return load(in, s); })));
  if (format == "npz") return plain(nb::cast(read_from(file, [&](const auto& in) { return load_npz(in, s); })));
  if (format == "safetensors") {
    const SafetensorsLoad all = read_from(file, [&](const auto& in) { return load_safetensors(in, s); });
    return with_metadata(nb::cast(all.first), nb::cast(all.second));
  }
  if (format == "gguf") {
    const GGUFLoad all = read_from(file, [&](const auto& in) { return load_gguf(in, s); });
    nb::dict metadata;
    for (const auto& [name, value] : all.second) metadata[name.c_str()] = metadata_object(value);
    return with_metadata(nb::cast(all.first), metadata);
  }
  if (format == "pt" || format == "pth")
    return plain(nb::cast(read_from(file, [&](const auto& in) { return load_torch(in, s); })));
  throw std::invalid_argument("[load] Unknown file format " + format);
}

Arrays named_arrays(const nb::args& args, const nb::kwargs& kwargs) {
  Arrays out;
  for (auto [name, value] : kwargs) out.emplace(nb::cast<std::string>(name), to_array(value));
  for (size_t k = 0; k < args.size(); ++k)
    if (!out.emplace("arr_" + std::to_string(k), to_array(args[k])).second)
      throw std::invalid_argument("[savez] two arrays are named arr_" + std::to_string(k));
  return out;
}

/// Returns a function of positional and keyword arrays that calls a Python function.
ArgsKwargsFunction exported(nb::callable fun) {
  return [fun = Kept(std::move(fun))](const Args& args, const Kwargs& kwargs) {
    nb::gil_scoped_acquire held;
    nb::list positional;
    nb::dict named;
    for (const array& a : args) positional.append(a);
    for (const auto& [name, a] : kwargs) named[name.c_str()] = a;
    nb::object found = nb::steal(PyObject_Call(fun->ptr(), nb::tuple(positional).ptr(), named.ptr()));
    if (!found.is_valid()) throw nb::python_error();
    if (is_array(found)) return std::vector<array>{array_of(found)};
    std::vector<array> out;
    if ((!PyTuple_Check(found.ptr()) && !PyList_Check(found.ptr())) || !nb::try_cast(found, out))
      throw std::invalid_argument(
          "[export_function] Outputs can be either a single array, a tuple, or a list of arrays.");
    return out;
  };
}

/// Returns the arguments of a call, of which one list or dict may stand for all positional or keyword arguments.
std::pair<Args, Kwargs> arguments_of(const nb::args& args, const nb::kwargs& kwargs) {
  Args positional;
  Kwargs named;
  for (nb::handle h : args) {
    if (PyDict_Check(h.ptr())) {
      for (auto [name, value] : nb::borrow<nb::dict>(h))
        named.insert_or_assign(nb::cast<std::string>(name), to_array(value));
    } else if (PyList_Check(h.ptr()) || PyTuple_Check(h.ptr())) {
      for (nb::handle x : nb::borrow<nb::object>(h)) positional.push_back(to_array(x));
    } else {
      positional.push_back(to_array(h));
    }
  }
  for (auto [name, value] : kwargs) named.insert_or_assign(nb::cast<std::string>(name), to_array(value));
  return {positional, named};
}

nb::object piece(const StateT& value) {
  return std::visit(
      [](const auto& v) -> nb::object {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::vector<bool>>) return nb::none();
        else return nb::cast(v);
      },
      value);
}

/// Returns what an export callback is told, as a dict.
nb::dict told(const ExportCallbackInput& input) {
  nb::dict out;
  for (const auto& [name, value] : input) {
    out[name.c_str()] = std::visit(
        [](const auto& v) -> nb::object {
          if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::vector<StateT>>) {
            nb::list parts;
            for (const StateT& x : v) parts.append(piece(x));
            return std::move(parts);
          } else {
            return nb::cast(v);
          }
        },
        value);
  }
  return out;
}

ExportCallback callback_of(nb::handle function) {
  return [function = Kept(nb::borrow(function))](const ExportCallbackInput& input) {
    nb::gil_scoped_acquire held;
    (*function)(told(input));
  };
}

void define_arrays(nb::module_& m) {
  m.def("load", load_any, nb::arg("file"), nb::arg("format") = nb::none(), nb::arg("return_metadata") = false,
        nb::kw_only(), nb::arg("stream") = nb::none(),
        nb::sig("def load(file: Any, /, format: str | None = None, return_metadata: bool = False, *, "
                "stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> Any"),
        "Returns the array of a .npy file, or the arrays by name of .npz, .safetensors, .gguf or PyTorch's .pt, from a "
        "path or an object with read(). With `return_metadata` a pair: arrays, metadata.");
  m.def(
      "save", [](nb::handle file, const Operand& arr) { write_to(file, [&](const auto& to) { save(to, arr.get()); }); },
      nb::arg("file"), nb::arg("arr"), nb::sig("def save(file: Any, arr: array) -> None"),
      "Writes one array in NumPy's format.");
  m.def(
      "savez",
      [](nb::handle file, const nb::args& args, const nb::kwargs& kwargs) {
        write_to(file, [&](const auto& to) { savez(to, named_arrays(args, kwargs)); });
      },
      nb::arg("file"), nb::arg("args"), nb::arg("kwargs"),
      nb::sig("def savez(file: Any, *args: array, **kwargs: array) -> None"),
      "Writes arrays as NumPy's archive; those without a name are arr_0, arr_1, ….");
  m.def(
      "savez_compressed",
      [](nb::handle file, const nb::args& args, const nb::kwargs& kwargs) {
        write_to(file, [&](const auto& to) { savez_compressed(to, named_arrays(args, kwargs)); });
      },
      nb::arg("file"), nb::arg("args"), nb::arg("kwargs"),
      nb::sig("def savez_compressed(file: Any, *args: array, **kwargs: array) -> None"),
      "Writes arrays as NumPy's archive, deflated.");
  m.def(
      "save_safetensors",
      [](nb::handle file, const Arrays& arrays,
         const std::optional<std::unordered_map<std::string, std::string>>& metadata) {
        write_to(file, [&](const auto& to) {
          save_safetensors(to, arrays, metadata.value_or(std::unordered_map<std::string, std::string>{}));
        });
      },
      nb::arg("file"), nb::arg("arrays"), nb::arg("metadata") = nb::none(),
      nb::sig("def save_safetensors(file: Any, arrays: dict[str, array], metadata: dict[str, str] | None = None) "
              "-> None"),
      "Writes a safetensors file.");
  m.def(
      "save_gguf",
      [](nb::handle file, const Arrays& arrays, const nb::dict& metadata) {
        std::unordered_map<std::string, GGUFMetaData> values;
        for (auto [name, value] : metadata) values.emplace(nb::cast<std::string>(name), metadata_value(value));
        write_to(file, [&](const auto& to) { save_gguf(to, arrays, values); });
      },
      nb::arg("file"), nb::arg("arrays"), nb::arg("metadata") = nb::dict(),
      nb::sig("def save_gguf(file: Any, arrays: dict[str, array], metadata: dict[str, array | str | list[str]] = {}) "
              "-> None"),
      "Writes a GGUF file of version 3.");
}

void define_functions_in_files(nb::module_& m) {
  nb::class_<FunctionExporter>(m, "FunctionExporter", "Collects traces of one function in one file.")
      .def("__call__",
           [](FunctionExporter& e, const nb::args& args, const nb::kwargs& kwargs) {
             const auto [positional, named] = arguments_of(args, kwargs);
             e(positional, named);
           })
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](FunctionExporter& e, const nb::args&) { e.close(); })
      .def("close", &FunctionExporter::close, "Writes the file.");
  m.def(
      "exporter",
      [](nb::handle file, nb::callable fun, bool shapeless, const std::optional<std::string>& metadata) {
        if (!is_path(file)) return exporter(callback_of(file), exported(std::move(fun)), shapeless);
        return exporter(path_of(file), exported(std::move(fun)), shapeless, metadata.value_or(""));
      },
      nb::arg("file"), nb::arg("fun"), nb::kw_only(), nb::arg("shapeless") = false, nb::arg("metadata") = nb::none(),
      nb::sig("def exporter(file: Any, fun: Callable, *, shapeless: bool = False, metadata: str | None = None) "
              "-> FunctionExporter"),
      "Returns an exporter that writes traces of the function for the arguments that it is called with.");
  m.def(
      "export_function",
      [](nb::handle file, nb::callable fun, const nb::args& args, bool shapeless,
         const std::optional<std::string>& metadata, const nb::kwargs& kwargs) {
        const auto [positional, named] = arguments_of(args, kwargs);
        if (!is_path(file) && metadata)
          throw std::invalid_argument("[export_function] metadata goes into a file; a callback takes none");
        if (!is_path(file))
          return export_function(callback_of(file), exported(std::move(fun)), positional, named, shapeless);
        export_function(path_of(file), exported(std::move(fun)), positional, named, shapeless, metadata.value_or(""));
      },
      nb::arg("file_or_callback"), nb::arg("fun"), nb::arg("args"), nb::kw_only(), nb::arg("shapeless") = false,
      nb::arg("metadata") = nb::none(), nb::arg("kwargs"),
      nb::sig("def export_function(file_or_callback: Any, fun: Callable, *args: array, shapeless: bool = False, "
              "metadata: str | None = None, **kwargs: array) -> None"),
      "Writes one trace of a function to a file, or tells a callback of it.");
  m.def(
      "import_function",
      [](nb::handle file, bool return_metadata) -> nb::object {
        const ImportedFunction imported = import_function(path_of(file));
        nb::object function = nb::cpp_function([imported](const nb::args& args, const nb::kwargs& kwargs) {
          const auto [positional, named] = arguments_of(args, kwargs);
          return helpers::tuple(imported(positional, named));
        });
        if (!return_metadata) return function;
        return nb::make_tuple(function, imported.metadata());
      },
      nb::arg("file"), nb::arg("return_metadata") = false,
      nb::sig("def import_function(file: Any, return_metadata: bool = False) -> Any"),
      "Returns the function of a file; with `return_metadata` a pair: function, text.");
}

}  // namespace

void define_files(nb::module_& m) {
  define_arrays(m);
  define_functions_in_files(m);
}

}  // namespace weft::python
