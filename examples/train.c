/* Trains a network of two layers on the spiral of three arms, in C99: a compiled step with its parameters as state. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "weft/c.h"

enum { points = 300, classes = 3, hidden = 64, parameters = 4 };

static const weft_stream here = {0};

/* Ends the program where a call failed. */
static void need(weft_status status) {
  if (status == WEFT_OK) return;
  fprintf(stderr, "%s\n", weft_error_message());
  exit(1);
}

/* Replaces a handle by the result of an operation on it. */
static void become(weft_array* a, weft_array by) {
  weft_array_free(*a);
  *a = by;
}

/* Appends the mean cross entropy of tanh(x w + b) v + c. Arguments: w, b, v, c, x, targets. */
static weft_status loss(weft_arrays results, weft_arrays arguments, void* context) {
  (void)context;
  weft_array in[6], a, value;
  for (size_t k = 0; k < 6; ++k) need(weft_arrays_get(&in[k], arguments, k));
  need(weft_matmul(&a, in[4], in[0], here));
  need(weft_add(&value, a, in[1], here));
  become(&a, value);
  need(weft_tanh(&value, a, here));
  become(&a, value);
  need(weft_matmul(&value, a, in[2], here));
  become(&a, value);
  need(weft_add(&value, a, in[3], here));
  become(&a, value);
  need(weft_fast_cross_entropy(&value, a, in[5], here));
  become(&a, value);
  need(weft_mean(&value, a, here));
  need(weft_arrays_append(results, value));
  weft_array_free(value);
  weft_array_free(a);
  for (size_t k = 0; k < 6; ++k) weft_array_free(in[k]);
  return WEFT_OK;
}

/* What a step of training uses. */
struct training {
  weft_array state[parameters];
  weft_function gradients;
};

/* One step of gradient descent, which rebinds the parameters; appends the loss. Arguments: x, targets. */
static weft_status step(weft_arrays results, weft_arrays arguments, void* context) {
  struct training* t = context;
  weft_arrays all, out;
  weft_array rate, a, b;
  need(weft_arrays_new(&all, t->state, parameters));
  for (size_t k = 0; k < 2; ++k) {
    need(weft_arrays_get(&a, arguments, k));
    need(weft_arrays_append(all, a));
    weft_array_free(a);
  }
  need(weft_function_call(&out, t->gradients, all)); /* the loss, then a gradient for each parameter */
  need(weft_array_new_double(&rate, 0.5, WEFT_FLOAT32));
  for (size_t k = 0; k < parameters; ++k) {
    need(weft_arrays_get(&a, out, 1 + k));
    need(weft_multiply(&b, a, rate, here));
    become(&a, b);
    need(weft_subtract(&b, t->state[k], a, here));
    become(&t->state[k], b);
    weft_array_free(a);
  }
  need(weft_arrays_get(&a, out, 0));
  need(weft_arrays_append(results, a));
  weft_array_free(a);
  weft_array_free(rate);
  weft_arrays_free(out);
  weft_arrays_free(all);
  return WEFT_OK;
}

static void begin(struct training* t) {
  const int64_t shapes[parameters][2] = {{2, hidden}, {1, hidden}, {hidden, classes}, {1, classes}};
  need(weft_random_seed(1));
  for (size_t k = 0; k < parameters; ++k)
    need(k % 2 ? weft_zeros(&t->state[k], shapes[k], 2, here)
               : weft_random_normal_loc_scale(&t->state[k], shapes[k], 2, 0.0f, k ? 0.2f : 1.0f, NULL, here));
  const int argnums[parameters] = {0, 1, 2, 3};
  weft_function f;
  need(weft_function_new(&f, loss, NULL, NULL));
  need(weft_value_and_grad(&t->gradients, f, argnums, parameters));
  weft_function_free(f);
}

int main(void) {
  static float x[points][2];
  static int32_t targets[points];
  for (int k = 0; k < points; ++k) {
    const int arm = k % classes;
    const double r = (double)k / points, angle = 5 * r + 2 * 3.14159265 * arm / classes;
    x[k][0] = (float)(r * cos(angle)), x[k][1] = (float)(r * sin(angle));
    targets[k] = arm;
  }
  struct training t;
  begin(&t);
  weft_array* state[parameters];
  for (size_t k = 0; k < parameters; ++k) state[k] = &t.state[k];
  weft_function f, compiled;
  need(weft_function_new(&f, step, &t, NULL));
  need(weft_compile_with_state(&compiled, f, state, parameters));

  weft_array data[2], value;
  need(weft_array_new(&data[0], x, (int64_t[]){points, 2}, 2, WEFT_FLOAT32));
  need(weft_array_new(&data[1], targets, (int64_t[]){points}, 1, WEFT_INT32));
  weft_arrays batch, out;
  need(weft_arrays_new(&batch, data, 2));
  double now = 0;
  for (int k = 0; k < 2000; ++k) {
    need(weft_function_call(&out, compiled, batch));
    if (k % 500 == 0 || k == 1999) {
      need(weft_arrays_get(&value, out, 0));
      need(weft_array_item(&now, value));
      printf("step %4d: loss %.4f\n", k, now);
      weft_array_free(value);
    }
    weft_arrays_free(out);
  }
  weft_arrays_free(batch);
  for (int k = 0; k < 2; ++k) weft_array_free(data[k]);
  weft_function_free(compiled);
  weft_function_free(f);
  weft_function_free(t.gradients);
  for (int k = 0; k < parameters; ++k) weft_array_free(t.state[k]);
  return now < 0.25 ? 0 : 1;
}
