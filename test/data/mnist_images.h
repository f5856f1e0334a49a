/* mnist_images.h - three pictures of 2 x 2 as the IDX file of MNIST has them. */
#ifndef MNIST_IMAGES_H
#define MNIST_IMAGES_H

#define IMAGES                                   \
    "\0\0\x08\x03\0\0\0\x03\0\0\0\x02\0\0\0\x02" \
    "\0\1\x7f\xff\xc8\xfe\0\0\1\1\1\1"

#endif
