import type { Worker } from "node:worker_threads"

/** How long a thread that was told to end has, until it is told again. */
const againMillis = 50

/**
 * Ends a thread, whatever it does, and waits for that. V8 may lose the order to end that comes while a thread's modules are
 * loaded (Node 22: one in some hundred): the thread then goes on with a loop that has no end, so the order is repeated.
 */
export const endThread = async (thread: Worker): Promise<void> => {
  const again = setInterval(() => void thread.terminate(), againMillis)
  try {
    await thread.terminate()
  } finally {
    clearInterval(again)
  }
}
