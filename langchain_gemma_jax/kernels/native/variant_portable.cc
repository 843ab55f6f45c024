// For any processor.
#define VARIANT_PORTABLE
#include "products.h"

DEFINE_VARIANT(portable)
