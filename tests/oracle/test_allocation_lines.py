"""What TensorFlow's log tells of host memory: which chunk was freed, and what came before a function's first call."""

from simplace.oracle.allocation_lines import read_allocations
from simplace.program.allocation_log import Allocation

MAIN, OTHER = 7, 8
CPU = "bfc_cpu_allocator_for_gpu"


def line(text: str, thread: int = MAIN, file: str = "bfc_allocator.cc:328") -> str:
    return f"I0000 00:00:1795404548.736379   {thread} {file}] {text}"


def allocate(size: int) -> str:
    return line(f"AllocateRaw {CPU}  {size} 0x7f1b75afb040")


def free(size: int, thread: int = MAIN) -> str:
    return line(f"DeallocateRaw {CPU} {size}", thread)


def tensor(what: str, number: int, thread: int = MAIN) -> str:
    text = f'__LOG_MEMORY__ MemoryLogTensor{what} {{ allocation_id: {number} allocator_name: "{CPU}" }}'
    return line(text, thread, "log_memory.cc:34")


def freed(*lines: str) -> list[int]:
    """List the numbers of the chunks that are freed."""
    return [one.number for one in read_allocations(lines).allocations if not one.size]


def test_a_tensor_is_freed_by_its_number() -> None:
    assert freed(allocate(40), allocate(40), tensor("Deallocation", 1), free(40)) == [1]


def test_what_a_kernel_takes_besides_tensors_is_the_latest_chunk_of_its_size() -> None:
    log = allocate(40), allocate(40), allocate(40), tensor("Allocation", 3), free(40), free(40), free(40)
    assert freed(*log) == [2, 1, 3]


def test_threads_free_their_own_tensors() -> None:
    log = allocate(40), allocate(40), tensor("Deallocation", 1, MAIN), tensor("Deallocation", 2, OTHER)
    assert freed(*log, free(40, OTHER), free(40, MAIN)) == [2, 1]


def test_what_was_allocated_before_the_log_begins_is_left_out() -> None:
    assert read_allocations([free(40), line(f"AllocateRaw {CPU}  40"), free(0)]).allocations == ()


def test_calls_follow_what_came_before_them() -> None:
    begins = 'Instantiating MultiDevice function "f" on default device "/job:localhost/replica:0/task:0/device:CPU:0"'
    call = line(begins, file="process_function_library_runtime.cc:518")
    log = read_allocations([allocate(40), call, allocate(8), call])
    assert log.before("f") == (Allocation(1, 40),)
    assert log.before(None) == ()
