/* Operators that choose elements by their places. A place outside of the tensor is an error of the device. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "../kernels.h"

/* Copies the rows of an axis that a vector of places names; the places may have any shape. */
static int take(Task *task, const Tensor *in, int64_t axis, const Tensor *places, const Tensor *out) {
  Split split = split_at(in, axis);
  double *values = numbers(task, in), *chosen = numbers(task, places);
  int64_t count = elements(places);
  double *found = scratch(task, elements(out) * sizeof *found);
  for (int64_t outer = 0; outer < split.outer; outer++)
    for (int64_t k = 0; k < count; k++) {
      int64_t row = chosen[k] < 0 ? chosen[k] + split.size : chosen[k];
      if (row < 0 || row >= split.size) return INVALID_ARGUMENT;
      memcpy(found + (outer * count + k) * split.inner, values + (outer * split.size + row) * split.inner,
             split.inner * sizeof *found);
    }
  put(out, found);
  return SUCCESS;
}
static int embedding(Task *task) { return take(task, tensor(task, 0), 0, tensor(task, 1), tensor(task, 2)); }
static int select_rows(Task *task) {
  return take(task, tensor(task, 0), integer(task, 1), tensor(task, 2), tensor(task, 3));
}
static int old_gather(Task *task) {
  return take(task, tensor(task, 0), first_number(tensor(task, 2)), tensor(task, 1), output(task, 0));
}

/* Adds rows to the rows that places name; negative places of the aclop name none. */
static int add_rows(Task *task, const Tensor *rows, const Tensor *places, const Tensor *out) {
  int64_t count = elements(places), size = count ? elements(rows) / count : 0;
  double *given = numbers(task, rows), *chosen = numbers(task, places);
  double *total = scratch(task, elements(out) * sizeof *total);
  for (int64_t k = 0; k < count; k++)
    for (int64_t item = 0; chosen[k] >= 0 && item < size; item++)
      total[(int64_t)chosen[k] * size + item] += given[k * size + item];
  put(out, total);
  return SUCCESS;
}
static int embedding_gradient(Task *task) { return add_rows(task, tensor(task, 0), tensor(task, 1), tensor(task, 5)); }
static int old_segment_sum(Task *task) { return add_rows(task, tensor(task, 0), tensor(task, 1), output(task, 0)); }

/* Calls `visit` with the place of each index, and with the element of a tensor that it names along an axis. */
typedef void (*Visit)(double *one, double *other, int64_t at, int64_t named);
static int each_index(Task *task, const Tensor *shape, int64_t axis, const Tensor *places, Visit visit, double *one,
                      double *other) {
  double *chosen = numbers(task, places);
  int along = axis_of(shape, axis);
  for (int64_t k = 0; k < elements(places); k++) {
    int64_t rest = k, named = 0, step = 1;
    for (int dim = shape->rank - 1; dim >= 0; dim--) {
      int64_t index = rest % places->shape[dim];
      rest /= places->shape[dim];
      if (dim == along) index = chosen[k] < 0 ? chosen[k] + shape->shape[dim] : chosen[k];
      if (index < 0 || index >= shape->shape[dim]) return INVALID_ARGUMENT;
      named += index * step;
      step *= shape->shape[dim];
    }
    visit(one, other, k, named);
  }
  return SUCCESS;
}
static void read_one(double *found, double *values, int64_t at, int64_t named) { found[at] = values[named]; }
static void add_one(double *given, double *total, int64_t at, int64_t named) { total[named] += given[at]; }
static void write_one(double *given, double *total, int64_t at, int64_t named) { total[named] = given[at]; }

static int gather(Task *task) { /* in, axis, places, out */
  Tensor *in = tensor(task, 0), *places = tensor(task, 2);
  double *found = scratch(task, elements(places) * sizeof *found);
  int error = each_index(task, in, integer(task, 1), places, read_one, found, numbers(task, in));
  put(tensor(task, 3), found);
  return error;
}
static int scatter(Task *task, const Tensor *added, Visit visit, const Tensor *out) { /* in, axis, places, added */
  Tensor *in = tensor(task, 0), *places = tensor(task, 2);
  double *total = numbers(task, in), *given;
  if (added) {
    Tensor part = *added; /* as large as the places */
    for (int axis = 0; axis < part.rank; axis++) part.shape[axis] = places->shape[axis];
    given = numbers(task, &part);
  } else {
    given = scratch(task, elements(places) * sizeof *given);
    for (int64_t k = 0; k < elements(places); k++) given[k] = scalar(task, 3, 0);
  }
  int error = each_index(task, in, integer(task, 1), places, visit, given, total);
  put(out, total);
  return error;
}
static int scatter_add(Task *task) { return scatter(task, tensor(task, 3), add_one, tensor(task, 4)); }
static int scatter_tensor(Task *task) {
  return scatter(task, tensor(task, 3), integer(task, 4) ? add_one : write_one, tensor(task, 5));
}
static int scatter_in_place(Task *task) { return scatter(task, tensor(task, 3), integer(task, 4) ? add_one : write_one, tensor(task, 0)); }
static int scatter_value_in_place(Task *task) {
  return scatter(task, NULL, integer(task, 4) ? add_one : write_one, tensor(task, 0));
}
static int scatter_value(Task *task) { return scatter(task, NULL, integer(task, 4) ? add_one : write_one, tensor(task, 5)); }

/* in[i, j, …] with tensors of places for the first axes: in, list, out */
static int64_t *flat_places(Task *task, const Tensor *in, const TensorList *given, int64_t *count, int64_t *inner) {
  Tensor like = {.rank = 0};
  for (uint64_t k = 0; k < given->count; k++) { /* the places are broadcast to one shape */
    const Tensor *one = given->item[k];
    for (int back = 1; back <= one->rank; back++) {
      if (back > like.rank) {
        memmove(like.shape + 1, like.shape, like.rank++ * sizeof *like.shape);
        like.shape[0] = 1;
      }
      if (one->shape[one->rank - back] != 1) like.shape[like.rank - back] = one->shape[one->rank - back];
    }
  }
  *count = elements(&like);
  *inner = 1;
  for (int axis = given->count; axis < in->rank; axis++) *inner *= in->shape[axis];
  int64_t *flat = scratch(task, *count * sizeof *flat);
  for (uint64_t k = 0; k < given->count; k++) {
    double *chosen = numbers_as(task, given->item[k], &like);
    for (int64_t at = 0; at < *count; at++) {
      int64_t index = chosen[at] < 0 ? chosen[at] + in->shape[k] : chosen[at];
      if (index < 0 || index >= in->shape[k]) return NULL;
      flat[at] = flat[at] * in->shape[k] + index;
    }
  }
  return flat;
}
static int index_by_tensors(Task *task) {
  Tensor *in = tensor(task, 0);
  int64_t count, inner, *flat = flat_places(task, in, list(task, 1), &count, &inner);
  if (!flat) return INVALID_ARGUMENT;
  double *values = numbers(task, in), *found = scratch(task, count * inner * 8);
  for (int64_t k = 0; k < count * inner; k++) found[k] = values[flat[k / inner] * inner + k % inner];
  put(tensor(task, 2), found);
  return SUCCESS;
}
static int put_by_tensors(Task *task) { /* in, list, values, adds, is unsafe */
  Tensor *in = tensor(task, 0), *given = tensor(task, 2);
  int64_t count, inner, *flat = flat_places(task, in, list(task, 1), &count, &inner);
  if (!flat) return INVALID_ARGUMENT;
  double *values = numbers(task, in), *added = numbers(task, given);
  int64_t most = elements(given);
  for (int64_t k = 0; k < count * inner; k++) {
    double *place = values + flat[k / inner] * inner + k % inner, value = added[most == count * inner ? k : k % most];
    *place = integer(task, 3) ? *place + value : value;
  }
  put(in, values);
  return SUCCESS;
}

/* Adds rows to zeros, at places that the last axis of the first input spells: places, rows -> out */
static int old_scatter(Task *task) {
  const Tensor *places = tensor(task, 0), *out = output(task, 0);
  int64_t depth = places->shape[places->rank - 1], count = elements(places) / depth;
  int64_t size = elements(tensor(task, 1)) / (count ? count : 1);
  double *chosen = numbers(task, places), *given = numbers(task, tensor(task, 1));
  double *total = scratch(task, elements(out) * sizeof *total);
  for (int64_t k = 0; k < count; k++) {
    int64_t row = 0;
    for (int64_t axis = 0; axis < depth; axis++) row = row * out->shape[axis] + chosen[k * depth + axis];
    for (int64_t item = 0; item < size; item++) total[row * size + item] += given[k * size + item];
  }
  put(out, total);
  return SUCCESS;
}

static int one_hot(Task *task) { /* in, depth, on, off, axis, out */
  Tensor *out = tensor(task, 5);
  int64_t axis = integer(task, 4);
  Split split = split_at(out, axis);
  double *chosen = numbers(task, tensor(task, 0)), *found = scratch(task, elements(out) * 8);
  double on = first_number(tensor(task, 2)), off = first_number(tensor(task, 3));
  for (int64_t k = 0; k < elements(out); k++) {
    int64_t class = k / split.inner % split.size, row = k / split.inner / split.size * split.inner + k % split.inner;
    found[k] = chosen[row] == class ? on : off;
  }
  put(out, found);
  return SUCCESS;
}

/* ---- orders: stable, NaN is the largest */

typedef struct { double value; int64_t place; bool is_descending; } Item;
static int compare(const void *left, const void *right) {
  const Item *a = left, *b = right;
  int order = isnan(a->value) != isnan(b->value) ? (isnan(a->value) ? 1 : -1)
                                                : (a->value > b->value) - (a->value < b->value);
  if (a->is_descending) order = -order;
  return order ? order : (a->place > b->place) - (a->place < b->place);
}
static int ordered(Task *task, int64_t axis, int64_t kept, bool is_descending, const Tensor *values, const Tensor *places) {
  const Tensor *in = tensor(task, 0);
  Split split = split_at(in, axis);
  double *given = numbers(task, in), *value = scratch(task, elements(in) * 8), *place = scratch(task, elements(in) * 8);
  Item *row = scratch(task, split.size * sizeof *row);
  for (int64_t outer = 0; outer < split.outer; outer++)
    for (int64_t inner = 0; inner < split.inner; inner++) {
      for (int64_t k = 0; k < split.size; k++)
        row[k] = (Item){given[(outer * split.size + k) * split.inner + inner], k, is_descending};
      qsort(row, split.size, sizeof *row, compare);
      for (int64_t k = 0; k < kept; k++) {
        value[(outer * kept + k) * split.inner + inner] = row[k].value;
        place[(outer * kept + k) * split.inner + inner] = row[k].place;
      }
    }
  put(values, value);
  put(places, place);
  return SUCCESS;
}
static int sort_all(Task *task) { /* in, is stable, axis, is descending, values, places */
  Split split = split_at(tensor(task, 0), integer(task, 2));
  return ordered(task, integer(task, 2), split.size, integer(task, 3), tensor(task, 4), tensor(task, 5));
}
static int old_top(Task *task) {
  return ordered(task, -1, first_number(tensor(task, 1)), attribute_number(task, "largest", 1), output(task, 0),
                 output(task, 1));
}
static int top(Task *task) { /* in, count, axis, largest, is sorted, values, places */
  return ordered(task, integer(task, 2), integer(task, 1), integer(task, 3), tensor(task, 5), tensor(task, 6));
}

const Operator index_operators[] = {
    {"aclnnEmbedding", "ttt", embedding, LAST}, {"aclnnEmbeddingDenseBackward", "ttllbt", embedding_gradient, LAST},
    {"aclnnIndexSelect", "tltt", select_rows, LAST}, {"aclnnGather", "tltt", gather, LAST},
    {"aclnnScatterAdd", "tlttt", scatter_add, LAST}, {"aclnnScatter", "tlttlt", scatter_tensor, LAST},
    {"aclnnScatterValue", "tltslt", scatter_value, LAST},
    {"aclnnInplaceScatter", "tlttl", scatter_in_place, 0}, {"aclnnInplaceScatterValue", "tltsl", scatter_value_in_place, 0}, {"aclnnIndex", "tLt", index_by_tensors, LAST},
    {"aclnnIndexPutImpl", "tLtbb", put_by_tensors, 0}, {"aclnnOneHot", "tittlt", one_hot, LAST},
    {"aclnnSort", "tblbtt", sort_all, 4}, {"aclnnTopk", "tllbbtt", top, 5},
    END,
};
const Operator index_aclops[] = {
    {"GatherV2", "", old_gather, 0}, {"UnsortedSegmentSum", "", old_segment_sum, 0},
    {"TopK", "", old_top, 0}, {"ScatterNd", "", old_scatter, 0}, {"TopKV2", "", old_top, 0},
    END,
};
