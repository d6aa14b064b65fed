import os
import signal
import threading

import pytest

from emo.interruption import Interruption


def test_later_signals_do_not_disturb_the_closing() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    interruption = Interruption()
    closed = []

    def work_and_close() -> None:
        with interruption:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                os.kill(os.getpid(), signal.SIGINT)
                closed.append(True)

    with pytest.raises(SystemExit) as caught:
        work_and_close()
    assert closed
    assert caught.value.code == 143
    assert interruption.received == signal.SIGTERM
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_interrupt_is_a_keyboard_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), Interruption():
        os.kill(os.getpid(), signal.SIGINT)


def test_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGINT)
        assert interruption.received is None
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_install_nothing() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def work() -> None:
        with Interruption():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
