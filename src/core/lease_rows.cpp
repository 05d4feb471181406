#include "core/lease_rows.hpp"

#include "core/leases.hpp"

#include <algorithm>
#include <cstring>

namespace gcx {
namespace {

published::Row begin_row(uint64_t id, const Device& device, const Family& family,
                         const LeaseTerms& terms) {
    published::Row row{};
    row.id = id;
    row.device = device.ordinal();
    row.family = static_cast<uint32_t>(family.kind());
    row.flags = terms.shared ? GCX_LEASE_SHARED : 0;
    row.unit_count = family.shape().unit_count;
    row.unit_size = family.shape().unit_size;
    row.odd_size = family.shape().odd_size;
    std::memcpy(row.name, terms.name.c_str(), std::min(terms.name.size(), sizeof row.name - 1));
    return row;
}

} // namespace

published::Row row_of(const Lease& lease, const Reservationing& holding) {
    published::Row row = begin_row(lease.id, lease.device, *lease.family, lease.terms);
    row.changes = lease.changes() - 1;
    row.sm_count = lease.family->sm_count(holding.all());
    row.exclusive_sm_count = lease.family->sm_count(holding.own);
    std::copy_n(holding.own.words().data(), AtomSet::kWords, row.own);
    std::copy_n(holding.shared.words().data(), AtomSet::kWords, row.shared);
    return row;
}

published::Row row_of(const Device& device, const Family& family, const LeaseTerms& terms,
                      const Wish& wish) {
    published::Row row = begin_row(wish.who, device, family, terms);
    row.waits = 1;
    row.sm_count = wish.count;
    return row;
}

void Leases::publish(const published::Head& head) {
    const Lock lock(mutex_);
    std::vector<published::Row> rows;
    for (const auto& [device, shelf] : shelves_) {
        for (const auto& [id, row] : shelf->rows) {
            if (row.lease != nullptr)
                rows.push_back(row_of(*row.lease, row.lease->state().holding));
        }
        for (const Waiter* waiter : shelf->waiters)
            rows.push_back(row_of(*device, *waiter->family, *waiter->terms, waiter->wish));
    }
    publisher_.start(head);
    for (const published::Row& row : rows)
        Publisher::Update(publisher_).put(row);
    // From here on each lease tells of its streams itself.
    for (const auto& [device, shelf] : shelves_) {
        for (const auto& [id, row] : shelf->rows) {
            if (row.lease != nullptr)
                row.lease->count_streams(0);
        }
    }
    publisher_.show();
}

// In one moment, as they were changed.
void Leases::publish_changes(const Members& members) {
    if (!publisher_.active())
        return;
    Publisher::Update update(publisher_);
    for (const Member& member : members) {
        if (member.after.all().empty())
            update.remove(member.lease->id);
        else
            update.put(row_of(*member.lease, member.after));
    }
}

} // namespace gcx
