#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/api.h"

/// Weft in C99: arrays, all operations, transforms of functions, files. weft/c/operations.h, which this header
/// includes, has a function for each declaration of the C++ headers.
///
/// Every function returns a weft_status, WEFT_OK or what went wrong; weft_error_message then says it in words.
/// Results come through the first parameters, and are written where the function succeeds and nowhere else. A
/// handle that a function gives is the caller's: it frees it, once, with the function of its type. Handles that are
/// passed in stay the caller's. An array or a pointer that may be missing is NULL. Nothing is computed until
/// weft_eval, or until values are read.

#ifdef __cplusplus
/// Makes an enumeration an int in C++ as well, where a number that it does not name is then no undefined behaviour.
#define WEFT_AS_INT : int
extern "C" {
#else
/// An enumeration is an int in C.
#define WEFT_AS_INT
#endif

/// What a function returns.
typedef enum weft_status WEFT_AS_INT {
  WEFT_OK = 0,
  WEFT_INVALID_ARGUMENT = 1,  ///< shapes, dtypes or values that do not fit
  WEFT_OUT_OF_RANGE = 2,      ///< an axis or index that does not exist
  WEFT_OVERFLOW = 3,          ///< a size beyond 64 bits
  WEFT_RUNTIME_ERROR = 4,     ///< files, devices, asynchronous work
  WEFT_OUT_OF_MEMORY = 5,     ///< the host has no memory left
  WEFT_CALLBACK_FAILED = 6,   ///< a function of the caller's returned another status than WEFT_OK
} weft_status;
/// Returns what the calling thread's last function that failed has to say, with the operation, shapes and dtypes; "" if
/// none failed. Valid until the thread's next failure.
WEFT_API const char* weft_error_message(void);
/// Returns the version, "0.1.0".
WEFT_API const char* weft_version(void);

/// The dtypes, with the numbers of the C++ enumeration.
typedef enum weft_dtype WEFT_AS_INT {
  WEFT_BOOL,
  WEFT_UINT8,
  WEFT_UINT16,
  WEFT_UINT32,
  WEFT_UINT64,
  WEFT_INT8,
  WEFT_INT16,
  WEFT_INT32,
  WEFT_INT64,
  WEFT_FLOAT16,
  WEFT_BFLOAT16,
  WEFT_FLOAT32,
  WEFT_FLOAT64,
  WEFT_COMPLEX64,
  WEFT_FLOAT8_E4M3,
  WEFT_FLOAT8_E5M2,
  WEFT_COMPLEX128,
} weft_dtype;
/// Returns the bytes of an element, 0 for what is no dtype.
WEFT_API size_t weft_dtype_size(weft_dtype dtype);
/// Returns the name of a dtype, "float32"; "" for what is none.
WEFT_API const char* weft_dtype_name(weft_dtype dtype);

/// The kinds of devices.
typedef enum weft_device_type WEFT_AS_INT { WEFT_CPU = 0, WEFT_GPU = 1 } weft_device_type;
/// Where an operation runs: {0} is the calling thread's default stream.
typedef struct weft_stream {
  int kind;                 ///< 0: the default stream, 1: the device's stream, 2: stream `index`
  int index;                ///< of the stream, for kind 2
  weft_device_type device;  ///< the kind of device, for kinds 1 and 2
  int device_index;         ///< of the device among its kind
} weft_stream;
#ifdef __cplusplus
/// The calling thread's default stream.
#define WEFT_DEFAULT_STREAM (weft_stream{})
#else
/// The calling thread's default stream.
#define WEFT_DEFAULT_STREAM ((weft_stream){0})
#endif
/// Gives the stream of a device on which its operations run by default.
WEFT_API weft_status weft_device_stream(weft_stream* result, weft_device_type device, int device_index);
/// Makes a stream on a device.
WEFT_API weft_status weft_stream_new(weft_stream* result, weft_device_type device, int device_index);
/// Waits until everything issued on the stream is done.
WEFT_API weft_status weft_synchronize(weft_stream stream);
/// Sets the default device of the process.
WEFT_API weft_status weft_set_default_device(weft_device_type device, int device_index);
/// Gives the number of devices of a kind.
WEFT_API weft_status weft_device_count(int* result, weft_device_type device);

/// How the norm of a Fourier transform is shared between the two directions.
typedef enum weft_fft_norm WEFT_AS_INT { WEFT_FFT_BACKWARD, WEFT_FFT_ORTHO, WEFT_FFT_FORWARD } weft_fft_norm;

/// An array: an immutable value, computed when it is needed.
typedef struct weft_array_handle* weft_array;
/// A list of arrays.
typedef struct weft_arrays_handle* weft_arrays;
/// Arrays by name, and texts by name: what files hold.
typedef struct weft_map_handle* weft_map;
/// A function of arrays.
typedef struct weft_function_handle* weft_function;
/// Writes the traces of a function for several signatures to one file.
typedef struct weft_exporter_handle* weft_exporter;
/// Processes that communicate.
typedef struct weft_group_handle* weft_group;

/// Makes an array of a copy of row-major elements of the dtype.
WEFT_API weft_status weft_array_new(weft_array* result, const void* data, const int64_t* shape, size_t ndim,
                                    weft_dtype dtype);
/// Makes an array of the memory at `data`, row-major; `release(context)` is called when it is no longer used.
/// Nothing is copied where the memory is aligned for the dtype.
WEFT_API weft_status weft_array_new_managed(weft_array* result, void* data, const int64_t* shape, size_t ndim,
                                            weft_dtype dtype, void (*release)(void* context), void* context);
/// Makes an array without axes of a number, converted to the dtype.
WEFT_API weft_status weft_array_new_double(weft_array* result, double value, weft_dtype dtype);
WEFT_API weft_status weft_array_new_int(weft_array* result, int64_t value, weft_dtype dtype);
WEFT_API weft_status weft_array_new_complex(weft_array* result, float real, float imag);
WEFT_API weft_status weft_array_new_complex128(weft_array* result, double real, double imag);
/// Makes another handle of the same array.
WEFT_API weft_status weft_array_copy(weft_array* result, weft_array a);
/// Frees a handle. NULL is allowed.
WEFT_API void weft_array_free(weft_array a);
/// Returns the dtype, the number of axes, of elements and of bytes.
WEFT_API weft_dtype weft_array_dtype(weft_array a);
WEFT_API size_t weft_array_ndim(weft_array a);
WEFT_API size_t weft_array_size(weft_array a);
WEFT_API size_t weft_array_nbytes(weft_array a);
/// Returns the length of one axis, counted from the front; -1 for an axis that does not exist.
WEFT_API int64_t weft_array_dim(weft_array a, size_t axis);
/// Gives the value of an array with one element, evaluated and converted.
WEFT_API weft_status weft_array_item(double* result, weft_array a);
WEFT_API weft_status weft_array_item_int(int64_t* result, weft_array a);
/// Gives the elements in row-major order, evaluated; valid while the array's handle is.
WEFT_API weft_status weft_array_data(const void** result, weft_array a);
/// Gives the array as text, which weft_text_free frees.
WEFT_API weft_status weft_array_text(char** result, weft_array a);
/// Frees a text.
WEFT_API void weft_text_free(char* text);

/// Makes a list of arrays.
WEFT_API weft_status weft_arrays_new(weft_arrays* result, const weft_array* items, size_t count);
/// Frees a list. NULL is allowed.
WEFT_API void weft_arrays_free(weft_arrays list);
/// Returns the number of arrays.
WEFT_API size_t weft_arrays_size(weft_arrays list);
/// Gives a new handle of one array.
WEFT_API weft_status weft_arrays_get(weft_array* result, weft_arrays list, size_t index);
/// Appends an array.
WEFT_API weft_status weft_arrays_append(weft_arrays list, weft_array item);

/// Computes the arrays, in one program.
WEFT_API weft_status weft_eval(weft_arrays list);
WEFT_API weft_status weft_array_eval(weft_array a);
/// Starts computing the arrays, and returns at once.
WEFT_API weft_status weft_async_eval(weft_arrays list);

/// A function of the caller's: appends its results to `results`, which is empty. Both lists are the caller's of it: it
/// keeps neither.
typedef weft_status (*weft_callback)(weft_arrays results, weft_arrays arguments, void* context);
/// Makes a function of a callback; `release(context)` (which may be NULL) is called when it is no longer used.
WEFT_API weft_status weft_function_new(weft_function* result, weft_callback callback, void* context,
                                       void (*release)(void* context));
/// Frees a handle. NULL is allowed.
WEFT_API void weft_function_free(weft_function f);
/// Calls a function.
WEFT_API weft_status weft_function_call(weft_arrays* results, weft_function f, weft_arrays arguments);
/// Makes a function that computes the gradients of the first result, a scalar, by the arguments with these numbers;
/// with weft_value_and_grad the results come before the gradients.
WEFT_API weft_status weft_grad(weft_function* result, weft_function f, const int* argnums, size_t count);
WEFT_API weft_status weft_value_and_grad(weft_function* result, weft_function f, const int* argnums, size_t count);
/// Gives the results at the primals, and the products of the cotangents with the Jacobian.
WEFT_API weft_status weft_vjp(weft_arrays* results, weft_arrays* products, weft_function f, weft_arrays primals,
                              weft_arrays cotangents);
/// Gives the results at the primals, and the products of the Jacobian with the tangents.
WEFT_API weft_status weft_jvp(weft_arrays* results, weft_arrays* products, weft_function f, weft_arrays primals,
                              weft_arrays tangents);
/// Makes a function that is applied to every element along an axis of its arguments; -1 is an argument that is the same
/// for all. No axes at all are 0 for every argument, and every result.
WEFT_API weft_status weft_vmap(weft_function* result, weft_function f, const int* in_axes, size_t in_count,
                               const int* out_axes, size_t out_count);
/// Makes the function a program, traced once for each signature.
WEFT_API weft_status weft_compile(weft_function* result, weft_function f);
/// Makes the same, which also updates arrays of the caller's: `state` are pointers to handles that it reads, and
/// rebinds to their new values. The function reads them through the pointers, and may write to them. They must stay
/// where they are while the function exists.
WEFT_API weft_status weft_compile_with_state(weft_function* result, weft_function f, weft_array* const* state,
                                             size_t count);
/// Makes a function whose gradient computes it again instead of keeping its intermediate results.
WEFT_API weft_status weft_checkpoint(weft_function* result, weft_function f);
/// Makes a function with a derivative of its own: `vjp` takes the primals, the cotangents and the outputs one after the
/// other, and returns one cotangent for each primal.
WEFT_API weft_status weft_custom_vjp(weft_function* result, weft_function f, weft_function vjp);
/// Gives true_function(operands) where pred (one bool) is true, else false_function(operands): only that one runs.
WEFT_API weft_status weft_cond(weft_arrays* results, weft_array pred, weft_function true_function,
                               weft_function false_function, weft_arrays operands);
/// Gives the carry after `body` was applied for as long as `condition` (one bool) is true; at most max_steps times
/// where that is not negative.
WEFT_API weft_status weft_while_loop(weft_arrays* results, weft_function condition, weft_function body,
                                     weft_arrays init, int64_t max_steps);
/// Gives the last carry and the stacked results of the steps. `step` takes the carry and the elements of `xs` along
/// their first axis, and returns the next carry and its results.
WEFT_API weft_status weft_scan(weft_arrays* carry, weft_arrays* stacked, weft_function step, weft_arrays init,
                               weft_arrays xs, int64_t length, bool reverse);

/// Restarts the calling thread's default sequence of random numbers.
WEFT_API weft_status weft_random_seed(uint64_t seed);
/// Gives a key of random numbers.
WEFT_API weft_status weft_random_key(weft_array* result, uint64_t seed);

/// Gives the bytes that arrays use, the most that they used at once, and those that are kept for new ones.
WEFT_API size_t weft_active_memory(void);
WEFT_API size_t weft_peak_memory(void);
WEFT_API size_t weft_cache_memory(void);
/// Sets the peak to what is used now.
WEFT_API void weft_reset_peak_memory(void);
/// Returns the most bytes that arrays may use.
WEFT_API size_t weft_memory_limit(void);
/// Sets the most bytes that arrays may use, and that are kept for new ones; returns what the limit was. 0 is no limit
/// of the first, and keeps nothing. What would use more memory fails with WEFT_RUNTIME_ERROR.
WEFT_API size_t weft_set_memory_limit(size_t limit);
WEFT_API size_t weft_set_cache_limit(size_t limit);
/// Gives back what is kept for new arrays.
WEFT_API void weft_clear_cache(void);

/// Gives whether a backend of distributed programs is available: "any", "ring", "mpi", "nccl" or "jaccl".
WEFT_API weft_status weft_distributed_is_available(bool* result, const char* backend);
/// Gives the group of all processes, which is this one alone where the backend is not available; with `strict` that is
/// WEFT_RUNTIME_ERROR. Not built yet: connections between processes, so that every group has one process.
WEFT_API weft_status weft_distributed_init(weft_group* result, bool strict, const char* backend);
/// Frees a group. NULL is allowed.
WEFT_API void weft_group_free(weft_group group);
/// Returns the number of this process, and that of all processes of the group. NULL is the group of all processes, here
/// and below.
WEFT_API int weft_group_rank(weft_group group);
WEFT_API int weft_group_size(weft_group group);
/// Gives the group of those processes that give the same color, ordered by key, by rank where it is negative.
/// WEFT_RUNTIME_ERROR for a group of one.
WEFT_API weft_status weft_group_split(weft_group* result, weft_group group, int color, int key);
/// Give the sum, the largest and the smallest of the processes' arrays, element by element; the arrays joined along the
/// first axis; this process's part of their sum along the first axis.
WEFT_API weft_status weft_distributed_all_sum(weft_array* result, weft_array x, weft_group group, weft_stream stream);
WEFT_API weft_status weft_distributed_all_max(weft_array* result, weft_array x, weft_group group, weft_stream stream);
WEFT_API weft_status weft_distributed_all_min(weft_array* result, weft_array x, weft_group group, weft_stream stream);
WEFT_API weft_status weft_distributed_all_gather(weft_array* result, weft_array x, weft_group group,
                                                 weft_stream stream);
WEFT_API weft_status weft_distributed_sum_scatter(weft_array* result, weft_array x, weft_group group,
                                                  weft_stream stream);
/// Gives an array that is sent to process `dst` when it is evaluated. WEFT_INVALID_ARGUMENT in a group of one.
WEFT_API weft_status weft_distributed_send(weft_array* result, weft_array x, int dst, weft_group group,
                                           weft_stream stream);
/// Gives an array of this shape and dtype, or of those of x, that process `src` sends. WEFT_INVALID_ARGUMENT in a group
/// of one.
WEFT_API weft_status weft_distributed_recv(weft_array* result, const int64_t* shape, size_t ndim, weft_dtype dtype,
                                           int src, weft_group group, weft_stream stream);
WEFT_API weft_status weft_distributed_recv_like(weft_array* result, weft_array x, int src, weft_group group,
                                                weft_stream stream);

/// Makes an empty map.
WEFT_API weft_status weft_map_new(weft_map* result);
/// Frees a map. NULL is allowed.
WEFT_API void weft_map_free(weft_map map);
/// Sets an array, or a text, of a name.
WEFT_API weft_status weft_map_set(weft_map map, const char* name, weft_array value);
WEFT_API weft_status weft_map_set_text(weft_map map, const char* name, const char* value);
/// Gives a new handle of the array of a name; WEFT_OUT_OF_RANGE where there is none.
WEFT_API weft_status weft_map_get(weft_array* result, weft_map map, const char* name);
/// Returns the text of a name, NULL where there is none. Valid until the map changes.
WEFT_API const char* weft_map_text(weft_map map, const char* name);
/// Returns the number of arrays, and the name of one, in alphabetical order; NULL for one that does not exist.
WEFT_API size_t weft_map_size(weft_map map);
WEFT_API const char* weft_map_name(weft_map map, size_t index);
/// Gives the array of a .npy file.
WEFT_API weft_status weft_load(weft_array* result, const char* path);
/// Writes an array as a .npy file.
WEFT_API weft_status weft_save(const char* path, weft_array a);
/// Gives the arrays and texts of a file by its ending: .npz, .safetensors, .gguf, .pt or .pth.
WEFT_API weft_status weft_load_map(weft_map* result, const char* path);
/// Writes the arrays and texts of a map to a file by its ending: .npz, .safetensors, .gguf, .pt or .pth.
WEFT_API weft_status weft_save_map(const char* path, weft_map map);
/// Writes a function, traced for these arguments.
WEFT_API weft_status weft_export_function(const char* path, weft_function f, weft_arrays arguments);
/// Makes an exporter of f's signatures; with `shapeless`, as for C++'s ExportOptions::shapeless, the imported function
/// takes other lengths than those of the examples.
WEFT_API weft_status weft_exporter_new(weft_exporter* result, const char* path, weft_function f, bool shapeless);
/// Calls the function once with placeholders for these arguments, and adds what it computes as a signature.
WEFT_API weft_status weft_exporter_add(weft_exporter exporter, weft_arrays arguments);
/// Writes the file; nothing can be added afterwards (WEFT_RUNTIME_ERROR).
WEFT_API weft_status weft_exporter_close(weft_exporter exporter);
/// Frees an exporter. NULL is allowed. One that was not closed is closed, without a report of errors.
WEFT_API void weft_exporter_free(weft_exporter exporter);
/// Gives the function of a file, which calls the signature that fits its arguments.
WEFT_API weft_status weft_import_function(weft_function* result, const char* path);

#ifdef __cplusplus
}
#endif

#include "weft/c/operations.h"
