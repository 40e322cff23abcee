/** The words and numbers of a send, for those who read one and those who document it. Source: contract/notify#sending. */

/** The forms of a body, as its sender names them. */
export const bodyFormats = ["auto", "text", "markdown", "json", "log"] as const
export const priorities = ["low", "normal", "high"] as const
export type Priority = (typeof priorities)[number]

/** files of one send, the ids of uploads included */
export const attachmentsMax = 20
/** one file that comes with its send */
export const fileBytesMax = 52_428_800
