#include "net/udp/reader.h"

#include <algorithm>
#include <cstring>

#include <netinet/in.h>
#include <netinet/udp.h>

namespace urxe::net {
namespace {

template <typename Value>
Value value_of(const cmsghdr& part) {
  Value value{};
  std::memcpy(&value, CMSG_DATA(&part), sizeof(value));
  return value;
}

}  // namespace

Reader::Reader() : buffer_(new std::uint8_t[kDepth * kDatagramSize]) {
  for (std::size_t i = 0; i < kDepth; ++i) {
    Message& message = messages_[i];
    message.bytes = {.iov_base = buffer_.get() + i * kDatagramSize, .iov_len = kDatagramSize};
    msghdr& header = headers_[i].msg_hdr;
    header = {};
    header.msg_name = &message.source;
    header.msg_iov = &message.bytes;
    header.msg_iovlen = 1;
    header.msg_control = message.control.data();
  }
}

std::size_t Reader::read(ReceiveSocket& from) {
  for (std::size_t i = 0; i < depth_; ++i) {
    headers_[i].msg_hdr.msg_namelen = sizeof(SocketAddress);
    headers_[i].msg_hdr.msg_controllen = sizeof(Message::control);
  }
  const int count = recvmmsg(from.socket.number(), headers_.data(), static_cast<unsigned>(depth_),
                             MSG_DONTWAIT, nullptr);
  if (count <= 0) {
    was_full_ = false;
    return 0;
  }
  bool coalesced = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    read_control(from, i);
    coalesced = coalesced || headers_[i].msg_len > datagrams_[i].segment_size;
  }
  was_full_ = static_cast<std::size_t>(count) == depth_;
  depth_ = coalesced ? kDepthCoalesced : kDepth;
  return static_cast<std::size_t>(count);
}

void Reader::read_control(ReceiveSocket& from, std::size_t index) {
  msghdr& header = headers_[index].msg_hdr;
  const std::size_t size = headers_[index].msg_len;
  const SocketAddress& source = messages_[index].source;
  Datagram& datagram = datagrams_[index];
  datagram = {.path = {.source = address_of(source),
                       .destination = from.address,
                       .source_port = port_of(source)},
              .segment_size = size,
              .bytes = {buffer_.get() + index * kDatagramSize, size}};
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    const int level = part->cmsg_level;
    const int type = part->cmsg_type;
    if (level == IPPROTO_IP && type == IP_TOS) {
      datagram.path.traffic_class = value_of<std::uint8_t>(*part);
    } else if (level == IPPROTO_IP && type == IP_TTL) {
      datagram.path.hop_limit = static_cast<std::uint8_t>(value_of<int>(*part));
    } else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS) {
      datagram.path.traffic_class = static_cast<std::uint8_t>(value_of<int>(*part));
    } else if (level == IPPROTO_IPV6 && type == IPV6_HOPLIMIT) {
      datagram.path.hop_limit = static_cast<std::uint8_t>(value_of<int>(*part));
    } else if (level == IPPROTO_UDP && type == UDP_GRO) {
      const int segment = value_of<int>(*part);
      if (segment > 0) datagram.segment_size = std::min(size, static_cast<std::size_t>(segment));
    } else if (level == SOL_SOCKET && type == SO_RXQ_OVFL) {
      const auto seen = value_of<std::uint32_t>(*part);
      overflows_ += seen - from.overflows;  // a counter that wraps
      from.overflows = seen;
    }
  }
}

}  // namespace urxe::net
