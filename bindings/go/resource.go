package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Resource describes SMs of a device, or a workqueue. It is a value: copied and compared with ==,
// with nothing to close.
type Resource raw.Resource

func (resource *Resource) raw() *raw.Resource { return (*raw.Resource)(resource) }

// resourceOf returns the resource that a function writes.
func resourceOf(ask func(*raw.Resource) Result) (Resource, error) {
	resource, err := got(ask)
	return Resource(resource), err
}

// DeviceResource returns the whole device's resource of a type.
func DeviceResource(device int32, of raw.ResourceType) (Resource, error) {
	return resourceOf(func(to *raw.Resource) Result { return Raw.DeviceGetResource(device, of, to) })
}

// Counts returns requests for groups with these SM counts.
func Counts(counts ...uint32) []raw.SMRequest {
	requests := make([]raw.SMRequest, len(counts))
	for i, count := range counts {
		requests[i].SMCount = count
	}
	return requests
}

// Split divides the resource into a disjoint group for each request, and a remainder. flags are
// raw.Split...
func (resource Resource) Split(requests []raw.SMRequest, flags uint32) ([]Resource, Resource, error) {
	groups := make([]Resource, len(requests))
	rest, err := resourceOf(func(rest *raw.Resource) Result {
		to := first(groups).raw()
		return Raw.SMSplit(resource.raw(), first(requests), length(requests), flags, to, rest, nil, nil)
	})
	if err != nil {
		return nil, Resource{}, err
	}
	return groups, rest, nil
}

// Plan returns the SM counts that Split would give.
func (resource Resource) Plan(requests []raw.SMRequest, flags uint32) ([]uint32, uint32, error) {
	counts := make([]uint32, len(requests))
	rest, err := got(func(rest *uint32) Result {
		to := first(counts)
		return Raw.SMSplit(
			resource.raw(), first(requests), length(requests), flags, nil, nil, to, rest)
	})
	if err != nil {
		return nil, 0, err
	}
	return counts, rest, nil
}

// Info returns information about the resource.
func (resource Resource) Info() (raw.ResourceInfo, error) {
	return filled(func(info *raw.ResourceInfo) Result {
		return Raw.ResourceGetInfo(resource.raw(), info)
	})
}

// Intersect returns the SMs that both have.
func (resource Resource) Intersect(other Resource) (Resource, error) {
	without, err := resource.Subtract(other)
	if err != nil {
		return Resource{}, err
	}
	return resource.Subtract(without)
}

// Atom returns one of the resource's atoms.
func (resource Resource) Atom(index uint32) (Resource, error) {
	return resourceOf(func(to *raw.Resource) Result {
		return Raw.ResourceGetAtom(resource.raw(), index, to)
	})
}

// Configured returns the workqueue configuration with another scope and limit; 0 keeps the limit.
func (resource Resource) Configured(scope raw.WorkqueueScope, limit uint32) (Resource, error) {
	return resourceOf(func(to *raw.Resource) Result {
		return Raw.WorkqueueConfigure(resource.raw(), scope, limit, to)
	})
}
