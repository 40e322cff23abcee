// oxlint-disable-next-line no-control-regex
const controls =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu

const visible = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  return code === 0x7f ? "\u2421" : `\\u{${code.toString(16)}}`
}

/**
 * Text from outside as it may be shown in a terminal: control characters, escape sequences among them, and letters that
 * hide or turn around other ones are made visible. Line feeds and tabs stay; CR before LF goes.
 */
export const printable = (text: string): string => text.replaceAll("\r\n", "\n").replace(controls, visible)
