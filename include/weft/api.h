#pragma once

/// Marks what libweft exports. Everything else is hidden, so that Weft links with any other library.
#define WEFT_API __attribute__((visibility("default")))
