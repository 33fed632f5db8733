/* Preloaded into a program, lets it listen on 127.0.0.1 where it asks for every IPv4 address. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

typedef int (*binder)(int, const struct sockaddr *, socklen_t);

int bind(int number, const struct sockaddr *wanted, socklen_t size) {
    binder next = (binder)dlsym(RTLD_NEXT, "bind");
    struct sockaddr_in *address = (struct sockaddr_in *)wanted;
    if (wanted->sa_family != AF_INET || address->sin_addr.s_addr != htonl(INADDR_ANY))
        return next(number, wanted, size);
    struct sockaddr_in loopback = *address;
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return next(number, (struct sockaddr *)&loopback, sizeof loopback);
}
