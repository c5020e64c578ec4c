// How the sockets that carry files' bytes differ from others.
#ifndef MOSA_COMMON_BASE_TCP_OPTIONS_H_
#define MOSA_COMMON_BASE_TCP_OPTIONS_H_

namespace mosa {

// For a TCP socket that carries files' bytes, before it connects or listens (who is accepted
// inherits). Small messages leave at once, and a congestion control that paces (bbr) is exchanged
// for one that does not (cubic, or reno where that is not allowed): bytes come in bursts that wait
// for their reader, and what bbr takes for the path's rate is the reader's. Over fast links reads
// are three times as fast. Where the machine uses another algorithm (cubic, dctcp) it stays.
// Nothing fails if the kernel refuses.
void TuneBulkTcp(int socket);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_TCP_OPTIONS_H_
