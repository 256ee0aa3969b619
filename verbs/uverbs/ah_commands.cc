// Address handles, and how address vectors are laid out.
#include <algorithm>

#include "verbs/abi/rxe_abi.h"
#include "verbs/uverbs/address_vector.h"
#include "verbs/uverbs/command_table.h"
#include "verbs/uverbs/creation.h"

namespace urxe::verbs::uverbs {
namespace {

constexpr std::uint32_t kFlowLabelMask = 0xFFFFF;

}  // namespace

emulator::AddressVector vector_of(const ib_uverbs_qp_dest& destination) {
  return {.destination = wire::IpAddress::from_bytes(destination.dgid),
          .flow_label = destination.flow_label & kFlowLabelMask,
          .source_gid_index = destination.sgid_index,
          .hop_limit = destination.hop_limit,
          .traffic_class = destination.traffic_class,
          .port = destination.port_num,
          .global = destination.is_global != 0,
          .service_level = destination.sl,
          .static_rate = destination.static_rate,
          .source_path_bits = destination.src_path_bits,
          .destination_lid = destination.dlid};
}

emulator::AddressVector vector_of(const ib_uverbs_ah_attr& attributes) {
  return {.destination = wire::IpAddress::from_bytes(attributes.grh.dgid),
          .flow_label = attributes.grh.flow_label & kFlowLabelMask,
          .source_gid_index = attributes.grh.sgid_index,
          .hop_limit = attributes.grh.hop_limit,
          .traffic_class = attributes.grh.traffic_class,
          .port = attributes.port_num,
          .global = attributes.is_global != 0,
          .service_level = attributes.sl,
          .static_rate = attributes.static_rate,
          .source_path_bits = attributes.src_path_bits,
          .destination_lid = attributes.dlid};
}

ib_uverbs_qp_dest destination_of(const emulator::AddressVector& vector) {
  ib_uverbs_qp_dest destination{};
  destination.dlid = vector.destination_lid;
  destination.sl = vector.service_level;
  destination.src_path_bits = vector.source_path_bits;
  destination.static_rate = vector.static_rate;
  destination.is_global = vector.global ? 1 : 0;
  destination.port_num = vector.port;
  if (!vector.global) return destination;
  const auto& bytes = vector.destination.bytes();
  std::copy(bytes.begin(), bytes.end(), destination.dgid);
  destination.flow_label = vector.flow_label;
  destination.sgid_index = vector.source_gid_index;
  destination.hop_limit = vector.hop_limit;
  destination.traffic_class = vector.traffic_class;
  return destination;
}

Status create_ah(Context& context, const Command& command) {
  ib_uverbs_create_ah request{};
  if (auto read = command.read(request); !read) return read;
  if (auto ready = context.need_context(); !ready) return ready;
  if (request.attr.port_num != kPort) {
    return refuse(EINVAL, fmt::format("there is no port {}", request.attr.port_num));
  }
  const auto pd = context.objects().find<PdObject>(request.pd_handle);
  if (!pd) return tl::unexpected(pd.error());
  const auto address = context.device().create_ah(*(*pd)->pd, vector_of(request.attr));
  if (!address) return refuse(address.error());
  auto object = std::make_unique<AhObject>();
  object->address = *address;
  AhObject& added = context.objects().add(std::move(object));
  // An older librxe has no room for the number: it puts the address vector into its requests.
  if (command.driver.out.size >= sizeof(rxe_create_ah_resp)) {
    const std::uint32_t number = (*address)->number();
    if (auto kept = keep_if(command.driver.reply(number), context, added); !kept) return kept;
  }
  ib_uverbs_create_ah_resp response{};
  response.ah_handle = added.handle;
  return keep_if(command.reply(response), context, added);
}

Status destroy_ah(Context& context, const Command& command) {
  ib_uverbs_destroy_ah request{};
  if (auto read = command.read(request); !read) return read;
  const auto destroyed = destroy<AhObject>(context, request.ah_handle);
  if (!destroyed) return tl::unexpected(destroyed.error());
  return {};
}

}  // namespace urxe::verbs::uverbs
