/* Arrays in C99: values, an operation, a mistake, a derivative. */
#include <stdio.h>

#include "weft/c.h"

static weft_status sum_of_squares(weft_arrays results, weft_arrays arguments, void* context) {
  (void)context;
  weft_array x = NULL, squares = NULL, sum = NULL;
  weft_status status = weft_arrays_get(&x, arguments, 0);
  if (status == WEFT_OK) status = weft_square(&squares, x, WEFT_DEFAULT_STREAM);
  if (status == WEFT_OK) status = weft_sum(&sum, squares, WEFT_DEFAULT_STREAM);
  if (status == WEFT_OK) status = weft_arrays_append(results, sum);
  weft_array_free(x);
  weft_array_free(squares);
  weft_array_free(sum);
  return status;
}

int main(void) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  weft_array a = NULL, product = NULL;
  if (weft_array_new(&a, values, (int64_t[]){2, 3}, 2, WEFT_FLOAT32) != WEFT_OK) return 1;
  if (weft_matmul(&product, a, a, WEFT_DEFAULT_STREAM) == WEFT_OK) return 1;  // [2, 3] times [2, 3]
  printf("%s\n", weft_error_message());

  const int first[] = {0};
  weft_function f = NULL, gradient = NULL;
  weft_arrays arguments = NULL, gradients = NULL;
  weft_array g = NULL;
  const void* data = NULL;
  weft_status status = weft_function_new(&f, sum_of_squares, NULL, NULL);
  if (status == WEFT_OK) status = weft_grad(&gradient, f, first, 1);
  if (status == WEFT_OK) status = weft_arrays_new(&arguments, &a, 1);
  if (status == WEFT_OK) status = weft_function_call(&gradients, gradient, arguments);
  if (status == WEFT_OK) status = weft_arrays_get(&g, gradients, 0);
  if (status == WEFT_OK) status = weft_array_data(&data, g);  // computes it
  if (status != WEFT_OK) return 1;
  const float last = ((const float*)data)[5];
  printf("the derivative of the last element is %g\n", last);

  weft_array_free(g);
  weft_arrays_free(gradients);
  weft_arrays_free(arguments);
  weft_function_free(gradient);
  weft_function_free(f);
  weft_array_free(a);
  return last == 12 ? 0 : 1;
}
