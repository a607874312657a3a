/* Every C symbol that the Python bindings of TensorRT 8.6 to 11 and TensorRT-RTX want from the
 * TensorRT libraries, doing nothing. They let the bindings be imported, and so be described, on a
 * machine without TensorRT. Nothing can be built: each factory returns a null pointer. */
#include <stddef.h>

#define NULL_FACTORY(name) \
    void *name(void) { return NULL; }

NULL_FACTORY(createInferBuilder_INTERNAL)
NULL_FACTORY(createInferRefitter_INTERNAL)
NULL_FACTORY(createInferRuntime_INTERNAL)
NULL_FACTORY(createNvOnnxParser_INTERNAL)
NULL_FACTORY(createNvOnnxParserRefitter_INTERNAL)
NULL_FACTORY(getBuilderPluginRegistry)
NULL_FACTORY(getLogger)
NULL_FACTORY(getPluginRegistry)

/* TensorRT 8.6 still binds the UFF and Caffe parsers; these are their mangled C++ names. */
NULL_FACTORY(_ZN11nvuffparser15createUffParserEv)
NULL_FACTORY(_ZN11nvuffparser8FieldMapC1EPKcPKvNS_9FieldTypeEi)
NULL_FACTORY(_ZN14nvcaffeparser117createCaffeParserEv)
NULL_FACTORY(_ZN14nvcaffeparser123shutdownProtobufLibraryEv)

int getInferLibVersion(void) { return 0; }
int getNvOnnxParserVersion(void) { return 0; }
int initLibNvInferPlugins(void) { return 1; }
