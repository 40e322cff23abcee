/** Control and format characters (Unicode Cc and Cf) and line separators, but tab and line feed. */
const unseen = /(?![\t\n])[\p{Cc}\p{Cf}\u2028\u2029]/gu

const visible = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  return code === 0x7f ? "\u2421" : `\\u{${code.toString(16)}}`
}

/**
 * Text from outside as it may be shown in a terminal: control characters, escape sequences among them, and letters that
 * hide or turn around other ones are made visible. Line feeds and tabs stay; CR before LF goes.
 */
export const printable = (text: string): string => text.replaceAll("\r\n", "\n").replace(unseen, visible)
