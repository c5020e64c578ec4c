// How the sockets that carry files' bytes differ from others, and what became of their packets.
#ifndef MOSA_COMMON_BASE_TCP_OPTIONS_H_
#define MOSA_COMMON_BASE_TCP_OPTIONS_H_

#include <cstdint>

namespace mosa {

// For a TCP socket that carries files' bytes, before it connects or listens (accepted sockets
// inherit). Small messages leave at once, and a congestion control that paces (bbr) is exchanged
// for one that does not (cubic, or reno where that is not allowed): bytes come in bursts that wait
// for their reader, and what bbr takes for the path's rate is the reader's. Over fast links reads
// are three times as fast. Where the machine uses another algorithm (cubic, dctcp) it stays.
// Nothing fails if the kernel refuses.
void TuneBulkTcp(int socket);

// Ends a TCP connection at once when it is closed, also by the end of the process: what was sent
// and has not arrived is dropped, so that a request which was given up is not carried out later.
void AbortOnClose(int socket);

// How many segments the socket has sent again so far, and got out of order, as those that overtake
// a lost one are. A segment that came late grows it as a lost one does; one that was lost on the
// way here does not, if nothing came behind it. 0 where the kernel does not say.
uint64_t LostSegments(int socket);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_TCP_OPTIONS_H_
