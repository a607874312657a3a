"""Does the low-precision model still compute what the FP32 model computes?"""
