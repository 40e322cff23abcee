/** Embeddings and overrides, which can show text in another order than it has. Source: UAX 9, 2.1 and 2.2. */
const reordering = /[\u202a-\u202e]/g

// oxlint-disable-next-line no-control-regex
const controls = /[\u0000-\u0008\u000b-\u001f\u007f]/g

const pictureOf = (control: string): string =>
  control === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + control.charCodeAt(0))

/**
 * Text that every browser shows alike: lines end with \n, half a surrogate pair is U+FFFD, control characters but tab and
 * newline are the pictures of them, and nothing changes the order of what is read.
 */
export const cleanText = (text: string): string =>
  text.toWellFormed().replace(/\r\n?/g, "\n").replace(reordering, "").replace(controls, pictureOf)

/** The same without control characters, where they are a terminal's business. */
export const withoutControls = (text: string): string =>
  text.toWellFormed().replace(reordering, "").replace(controls, "")
