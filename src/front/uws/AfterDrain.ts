/**
 * Runs `write` in a turn of its own, for the drain handler of a WebSocket. uSockets stops to wait for the kernel when
 * that handler returns, unless a write within it is known to have failed; the one it uses for messages of 16 KiB and
 * more does not say so (`us_socket_write2`). The rest of such a message would stay until the next one, or the next ping.
 */
export const afterDrain = (write: () => void): void => {
  setImmediate(write)
}
