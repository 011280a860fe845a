! SPDX-License-Identifier: Apache-2.0
! The library's routines in Fortran; bridge_elastic.h says what they mean.
! Communicators are integers, as in `use mpi`; with `use mpi_f08` pass and take their %mpi_val.
! Ranks in a window's maps count from 0, as everywhere in MPI.
module bridge_elastic
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: bridge_init_adapt, bridge_comm, bridge_keep, bridge_share, bridge_probe_adapt
  public :: bridge_adapt_begin, bridge_adapt_commit, bridge_move_blocks, bridge_need
  public :: bridge_finalize, bridge_window

  integer, parameter, public :: bridge_new = 0, bridge_joining = 1

  !> What there is between begin and commit.
  type :: bridge_window
    integer :: merged = 0
    integer, allocatable :: before(:), after(:)
  end type

  interface
    function c_init(status) bind(c, name='bridge_f_init') result(failed)
      import :: c_int
      integer(c_int), intent(out) :: status
      integer(c_int) :: failed
    end function
    function c_comm() bind(c, name='bridge_f_comm') result(comm)
      import :: c_int
      integer(c_int) :: comm
    end function
    function c_keep(block, bytes) bind(c, name='bridge_keep') result(failed)
      import :: c_ptr, c_int
      type(c_ptr), value :: block, bytes
      integer(c_int) :: failed
    end function
    function c_share(address, bytes) bind(c, name='bridge_share') result(failed)
      import :: c_ptr, c_size_t, c_int
      type(c_ptr), value :: address
      integer(c_size_t), value :: bytes
      integer(c_int) :: failed
    end function
    function c_probe(adapt) bind(c, name='bridge_probe_adapt') result(failed)
      import :: c_int
      integer(c_int), intent(out) :: adapt
      integer(c_int) :: failed
    end function
    function c_begin(phase, merged, before, after) bind(c, name='bridge_f_begin') result(failed)
      import :: c_int
      integer(c_int), intent(inout) :: phase
      integer(c_int), intent(out) :: merged, before, after
      integer(c_int) :: failed
    end function
    subroutine c_maps(before, after) bind(c, name='bridge_f_maps')
      import :: c_int
      integer(c_int), intent(out) :: before(*), after(*)
    end subroutine
    function c_move(items, item_bytes, block, bytes) bind(c, name='bridge_f_move') result(failed)
      import :: c_long, c_size_t, c_ptr, c_int
      integer(c_long), value :: items
      integer(c_size_t), value :: item_bytes
      type(c_ptr), value :: block, bytes
      integer(c_int) :: failed
    end function
    function c_commit() bind(c, name='bridge_adapt_commit') result(failed)
      import :: c_int
      integer(c_int) :: failed
    end function
    function c_need(least, most) bind(c, name='bridge_need') result(failed)
      import :: c_int
      integer(c_int), value :: least, most
      integer(c_int) :: failed
    end function
    function c_finalize() bind(c, name='bridge_finalize') result(failed)
      import :: c_int
      integer(c_int) :: failed
    end function
  end interface

contains

  !> Initialises MPI; status is bridge_new or bridge_joining.
  subroutine bridge_init_adapt(status)
    integer, intent(out) :: status
    if (c_init(status) /= 0) error stop 'bridge_init_adapt'
  end subroutine

  integer function bridge_comm()
    bridge_comm = c_comm()
  end function

  !> Announces data: a pointer to memory of C's malloc (c_null_ptr at first) and its length in bytes.
  subroutine bridge_keep(block, bytes)
    type(c_ptr), target, intent(inout) :: block
    integer(c_size_t), target, intent(inout) :: bytes
    if (c_keep(c_loc(block), c_loc(bytes)) /= 0) error stop 'bridge_keep'
  end subroutine

  !> Announces a variable that is the same in all processes: its address and length in bytes.
  subroutine bridge_share(address, bytes)
    type(c_ptr), intent(in) :: address
    integer(c_size_t), intent(in) :: bytes
    if (c_share(address, bytes) /= 0) error stop 'bridge_share'
  end subroutine

  logical function bridge_probe_adapt()
    integer(c_int) :: adapt
    if (c_probe(adapt) /= 0) error stop 'bridge_probe_adapt'
    bridge_probe_adapt = adapt /= 0
  end function

  subroutine bridge_adapt_begin(phase, window)
    integer, intent(inout) :: phase
    type(bridge_window), intent(out) :: window
    integer(c_int) :: before, after
    if (c_begin(phase, window%merged, before, after) /= 0) error stop 'bridge_adapt_begin'
    allocate (window%before(before), window%after(after))
    call c_maps(window%before, window%after)
  end subroutine

  !> Redistributes items held in blocks, in the window that is open.
  subroutine bridge_move_blocks(items, item_bytes, block, bytes)
    integer(c_long), intent(in) :: items
    integer(c_size_t), intent(in) :: item_bytes
    type(c_ptr), target, intent(inout) :: block
    integer(c_size_t), target, intent(inout) :: bytes
    if (c_move(items, item_bytes, c_loc(block), c_loc(bytes)) /= 0) error stop 'bridge_move_blocks'
  end subroutine

  subroutine bridge_adapt_commit()
    if (c_commit() /= 0) error stop 'bridge_adapt_commit'
  end subroutine

  subroutine bridge_need(least, most)
    integer, intent(in) :: least, most
    if (c_need(least, most) /= 0) error stop 'bridge_need'
  end subroutine

  subroutine bridge_finalize()
    if (c_finalize() /= 0) error stop 'bridge_finalize'
  end subroutine
end module
