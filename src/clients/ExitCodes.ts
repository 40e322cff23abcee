/** The exit codes of `signalbox` and `signalbox-agent`. From 64 on as sysexits.h has it. Scripts rely on these. */
export const exitCodes = {
  done: 0,
  /** the work failed: refused by the server, or a check that found something */
  failed: 1,
  usage: 2,
  /** EX_UNAVAILABLE: no answer from the server */
  serverAway: 69,
  /** EX_NOPERM: the key, or its account, is refused */
  keyRefused: 77,
  /** EX_CONFIG: no server is known, or a setting is none */
  configuration: 78,
  interrupted: 130,
  terminated: 143
} as const
