package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Reservation is the exclusive use of some SMs across processes that use the same folder.
type Reservation raw.Reservation

// ReservationParams are the options of a reservation. The zero value doesn't wait, and accepts no
// smaller count.
type ReservationParams struct {
	Name       string
	Folder     string       // absolute; "": GCX_RESERVATION_DIR at the process's start, or the user's
	Flags      uint32       // 0 or raw.ReservationInherit
	Family     raw.SMFamily // 0: coscheduled
	MinSMCount uint32       // the smallest acceptable count; 0: the requested one
	TimeoutMS  uint32
	Cancel     Cancel
}

// AcquireReservation acquires SMs of a device, or Rest of them, until Close. While it waits, other
// goroutines run.
func AcquireReservation(device int32, smCount uint32, params ReservationParams) (Reservation, error) {
	name, err := optionalText("gcx.AcquireReservation: the name", params.Name)
	if err != nil {
		return 0, err
	}
	folder, err := optionalText("gcx.AcquireReservation: the folder", params.Folder)
	if err != nil {
		return 0, err
	}
	c := sized(&raw.ReservationParams{
		Flags: params.Flags, Family: params.Family, MinSMCount: params.MinSMCount,
		TimeoutMS: params.TimeoutMS, Cancel: raw.Cancel(params.Cancel), Name: name, Folder: folder,
	})
	return created[Reservation](func(reservation *raw.Reservation) Result {
		return Raw.ReservationAcquire(device, smCount, c, reservation)
	})
}

// JoinReservation joins the reservation of another process by its token: it lasts until all its
// processes have closed it or ended. It opens no driver.
func JoinReservation(token string) (Reservation, error) {
	text, err := cText("gcx.JoinReservation: the token", token)
	if err != nil {
		return 0, err
	}
	return created[Reservation](func(reservation *raw.Reservation) Result {
		return Raw.ReservationJoin(text, reservation)
	})
}

// Token returns what another process joins the reservation by: pass it in its environment.
func (reservation Reservation) Token() (string, error) {
	token, err := got(func(room *[raw.MaxReservationToken]byte) Result {
		return Raw.ReservationGetToken(raw.Reservation(reservation), &room[0], raw.MaxReservationToken)
	})
	return raw.String(token[:]), err
}

// Acquire acquires a lease of the reservation's SMs, which keeps the reservation.
func (reservation Reservation) Acquire(smCount uint32, params LeaseParams) (Lease, error) {
	params.Reservation = reservation
	return Acquire(-1, smCount, params)
}

// Reservations lists the reservations of a folder, then the waiting requests; "" is as in
// ReservationParams. It opens no driver.
func Reservations(folder string) ([]raw.LiveReservation, error) {
	text, err := optionalText("gcx.Reservations: the folder", folder)
	if err != nil {
		return nil, err
	}
	return listed(func(room *raw.LiveReservation, capacity uint32, count *uint32) Result {
		return Raw.ReservationList(text, room, capacity, count)
	})
}
