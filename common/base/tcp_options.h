// Options of the TCP sockets that carry file bytes, and a count of their lost segments.
#ifndef MOSA_COMMON_BASE_TCP_OPTIONS_H_
#define MOSA_COMMON_BASE_TCP_OPTIONS_H_

#include <cstdint>

namespace mosa {

// Prepares a TCP socket of the bulk plane. Call it before the socket connects or listens; accepted
// sockets inherit the options. Disables Nagle's algorithm. Replaces a pacing congestion control
// (bbr) by cubic, or by reno where cubic is not allowed, and keeps any other. The bytes come in
// bursts that wait for their reader, and bbr mistakes the reader's rate for the path's: without it,
// reads over fast links are three times as fast. Ignores refusals by the kernel.
void TuneBulkTcp(int socket);

// Makes close(2), or the end of the process, reset the TCP connection. Unsent and undelivered data
// are dropped, so that a request which was given up is not carried out later.
void AbortOnClose(int socket);

// Returns how many segments the socket has retransmitted plus how many it received out of order, so
// far. A late segment counts like a lost one. A lost incoming segment does not count if nothing
// arrived after it. 0 if the kernel does not say.
uint64_t LostSegments(int socket);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_TCP_OPTIONS_H_
