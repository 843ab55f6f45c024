// For any processor.
#define VARIANT_PORTABLE
#include "between_rows.h"

DEFINE_BETWEEN(portable)
