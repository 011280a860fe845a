! SPDX-License-Identifier: Apache-2.0
! Heat in a rod, in Fortran: cells are held in blocks, one per process.
! Usage: heat1d CELLS STEPS [PAUSE_US]. Its last line is the same whatever the widths were.
program heat1d
  use, intrinsic :: iso_c_binding
  use mpi
  use bridge_elastic
  implicit none
  interface
    function c_malloc(bytes) bind(c, name='malloc') result(block)
      import :: c_size_t, c_ptr
      integer(c_size_t), value :: bytes
      type(c_ptr) :: block
    end function
    function c_usleep(time_us) bind(c, name='usleep') result(failed)
      import :: c_int
      integer(c_int), value :: time_us
      integer(c_int) :: failed
    end function
  end interface
  integer, target :: step = 0
  integer :: status, phase = 0, steps, pause_us = 0, rank, ranks, error, unused
  integer(c_long) :: cells
  logical :: adapt
  character(32) :: word
  type(c_ptr), target :: block = c_null_ptr
  integer(c_size_t), target :: bytes = 0
  type(bridge_window) :: window

  call bridge_init_adapt(status)
  call get_command_argument(1, word); read (word, *) cells
  call get_command_argument(2, word); read (word, *) steps
  if (command_argument_count() > 2) then
    call get_command_argument(3, word); read (word, *) pause_us
  end if
  call bridge_share(c_loc(step), c_sizeof(step))
  call bridge_keep(block, bytes)
  adapt = status == bridge_joining
  if (.not. adapt) call set_up()
  do while (step < steps)
    if (adapt) then
      call bridge_adapt_begin(phase, window)
      call bridge_move_blocks(cells, 8_c_size_t, block, bytes)
      call bridge_adapt_commit()
      call mpi_comm_rank(bridge_comm(), rank, error)
      call mpi_comm_size(bridge_comm(), ranks, error)
      if (rank == 0) write (*, '(a,i0,a,i0)') 'heat1d: step ', step, ' width ', ranks
      flush (6)
    end if
    call compute()
    unused = c_usleep(pause_us)
    step = step + 1
    adapt = bridge_probe_adapt()
  end do
  call show_result()
  call bridge_finalize()

contains

  integer(c_long) function first_of(part)
    integer, intent(in) :: part
    call mpi_comm_size(bridge_comm(), ranks, error)
    first_of = cells * part / ranks
  end function

  subroutine set_up()
    real(c_double), pointer :: rod(:)
    call mpi_comm_rank(bridge_comm(), rank, error)
    bytes = int(8 * (first_of(rank + 1) - first_of(rank)), c_size_t)
    block = c_malloc(bytes)
    call c_f_pointer(block, rod, [bytes / 8])
    rod = 0
    if (rank == 0) rod(1) = 100
  end subroutine

  subroutine compute()
    real(c_double), pointer :: rod(:)
    real(c_double), allocatable :: wide(:)
    integer :: n, left, right
    call mpi_comm_rank(bridge_comm(), rank, error)
    call mpi_comm_size(bridge_comm(), ranks, error)
    call c_f_pointer(block, rod, [bytes / 8])
    n = size(rod)
    allocate (wide(0:n + 1), source=0d0)
    wide(1:n) = rod
    left = merge(rank - 1, mpi_proc_null, rank > 0)
    right = merge(rank + 1, mpi_proc_null, rank + 1 < ranks)
    call mpi_sendrecv(rod(1), 1, mpi_double_precision, left, 0, wide(n + 1), 1, &
                      mpi_double_precision, right, 0, bridge_comm(), mpi_status_ignore, error)
    call mpi_sendrecv(rod(n), 1, mpi_double_precision, right, 1, wide(0), 1, &
                      mpi_double_precision, left, 1, bridge_comm(), mpi_status_ignore, error)
    rod = 0.5d0 * wide(1:n) + 0.25d0 * (wide(0:n - 1) + wide(2:n + 1))
    if (rank == 0) rod(1) = 100
    if (rank == ranks - 1) rod(n) = 0
  end subroutine

  subroutine show_result()
    real(c_double), pointer :: rod(:)
    integer(8) :: mine, total
    integer :: i
    call mpi_comm_rank(bridge_comm(), rank, error)
    call c_f_pointer(block, rod, [bytes / 8])
    mine = 0
    do i = 1, size(rod)  ! sums of bits do not depend on their order
      mine = mine + iand(ieor(transfer(rod(i), mine), shiftr(transfer(rod(i), mine), 23)), &
                         int(z'FFFFFFFFFF', 8))
    end do
    call mpi_reduce(mine, total, 1, mpi_integer8, mpi_sum, 0, bridge_comm(), error)
    if (rank == 0) write (*, '(a,i0,a,i0)') 'heat1d: steps ', step, ' sum ', total
  end subroutine
end program
