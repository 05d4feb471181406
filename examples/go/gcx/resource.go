package gcx

// ResourceType is a gcx_resource_type.
type ResourceType int32

// The types of resources.
const (
	SM              ResourceType = 1
	WorkqueueConfig ResourceType = 1000
	Workqueue       ResourceType = 10000
)

// Family is a gcx_sm_family: what the driver promises of the SMs of one resource.
type Family int32

// The families of SM resources.
const (
	None        Family = 0
	Coscheduled Family = 1
	Fine        Family = 2
	MaxCluster  Family = 3
	Structured  Family = 4
	Foreign     Family = 5
)

// WorkqueueScope is a gcx_workqueue_scope.
type WorkqueueScope int32

// The scopes of workqueues.
const (
	DeviceScope        WorkqueueScope = 0
	GreenBalancedScope WorkqueueScope = 1
)

// SplitFlags choose the family of a split, or refuse counts that would be rounded.
type SplitFlags uint32

// The flags of a split.
const (
	SplitFine          SplitFlags = 0x1
	SplitMaxCluster    SplitFlags = 0x2
	SplitExact         SplitFlags = 0x100
	SplitUnleased      SplitFlags = 0x200 // keeps clear of leases
	SplitExcludeShared SplitFlags = 0x400 // leaves out the atom with the SMs of SharedSMs
)

// Resource describes SMs of a device, or a workqueue. It is a value: copied and compared with ==,
// with nothing to close.
type Resource struct{ opaque [16]uint64 }

// Request is what one group of a split is to be.
type Request struct {
	SMCount                     uint32 // or Rest: what the other groups leave
	CoscheduledSMCount          uint32
	PreferredCoscheduledSMCount uint32
	Flags                       uint32
	LocalityDomainID            uint32
	_                           [11]uint32
}

// ResourceInfo is what a resource says of itself.
type ResourceInfo resourceInfo

type resourceInfo struct {
	structSize                uint32
	Type                      ResourceType
	Device                    int32
	Family                    Family
	SMCount                   uint32
	AtomCount                 uint32
	MinPartitionSize          uint32
	CoscheduledAlignment      uint32
	Flags                     uint32
	LocalityDomainID          uint32
	WorkqueueScope            WorkqueueScope
	WorkqueueConcurrencyLimit uint32
}

// DeviceResource is the whole device's resource of a type.
func DeviceResource(device int32, of ResourceType) (Resource, error) {
	var resource Resource
	err := check(func() Result { return c.DeviceGetResource(device, of, &resource) })
	return resource, err
}

// Counts are the requests for groups of so many SMs.
func Counts(counts ...uint32) []Request {
	requests := make([]Request, len(counts))
	for i, count := range counts {
		requests[i].SMCount = count
	}
	return requests
}

// first is the address of a slice's first element, nil of an empty one's.
func first[T any](slice []T) *T {
	if len(slice) == 0 {
		return nil
	}
	return &slice[0]
}

// Split divides the resource into a disjoint group for each request, and what is left.
func (resource Resource) Split(requests []Request, flags SplitFlags) ([]Resource, Resource, error) {
	groups := make([]Resource, len(requests))
	var rest Resource
	err := check(func() Result {
		return c.SMSplit(&resource, first(requests), uint32(len(requests)), flags, first(groups), &rest)
	})
	if err != nil {
		return nil, Resource{}, err
	}
	return groups, rest, nil
}

// Plan tells the SMs that Split would give, and makes nothing.
func (resource Resource) Plan(requests []Request, flags SplitFlags) ([]uint32, uint32, error) {
	counts := make([]uint32, len(requests))
	var rest uint32
	err := check(func() Result {
		return c.SMPlan(&resource, first(requests), uint32(len(requests)), flags, first(counts), &rest)
	})
	if err != nil {
		return nil, 0, err
	}
	return counts, rest, nil
}

// Info tells what the resource is.
func (resource Resource) Info() (ResourceInfo, error) {
	var info resourceInfo
	info.structSize = sizeOf(&info)
	err := check(func() Result { return c.ResourceGetInfo(&resource, &info) })
	return ResourceInfo(info), err
}

func (resource Resource) with(
	other Resource, operation func(a, b, result *Resource) Result,
) (Resource, error) {
	var result Resource
	err := check(func() Result { return operation(&resource, &other, &result) })
	return result, err
}

// Union is the SMs of both.
func (resource Resource) Union(other Resource) (Resource, error) {
	return resource.with(other, c.ResourceUnion)
}

// Subtract is the SMs of resource without those of other.
func (resource Resource) Subtract(other Resource) (Resource, error) {
	return resource.with(other, c.ResourceSubtract)
}

// Intersect is the SMs that both have.
func (resource Resource) Intersect(other Resource) (Resource, error) {
	return resource.with(other, c.ResourceIntersect)
}

// Overlap is how many SMs both have.
func (resource Resource) Overlap(other Resource) (uint32, error) {
	var shared uint32
	err := check(func() Result { return c.ResourceOverlap(&resource, &other, &shared) })
	return shared, err
}

// LiveOverlap is how many of the SMs are held by contexts in use.
func (resource Resource) LiveOverlap() (uint32, error) {
	var shared uint32
	err := check(func() Result { return c.ResourceLiveOverlap(&resource, &shared) })
	return shared, err
}

// MaxClusterSize is the most blocks of a thread block cluster.
func (resource Resource) MaxClusterSize() (uint32, error) {
	var blocks uint32
	err := check(func() Result { return c.ResourceMaxCluster(&resource, &blocks) })
	return blocks, err
}

// SMIDs are the numbers of the SMs, once MapSMs has read them.
func (resource Resource) SMIDs() ([]uint32, error) {
	return ids(func(room *uint32, capacity uint32, count *uint32) Result {
		return c.ResourceGetSMIDs(&resource, room, capacity, count)
	})
}

// Atom is one of the resource's atoms.
func (resource Resource) Atom(index uint32) (Resource, error) {
	var atom Resource
	err := check(func() Result { return c.ResourceGetAtom(&resource, index, &atom) })
	return atom, err
}

// Configured is the workqueue configuration with another scope and limit; 0 keeps the limit.
func (resource Resource) Configured(scope WorkqueueScope, limit uint32) (Resource, error) {
	var configured Resource
	err := check(func() Result {
		return c.WorkqueueConfigure(&resource, scope, limit, &configured)
	})
	return configured, err
}
