import { fileType } from "#src/http/FileType.ts"

const nameLengthMax = 255
/** A longer ending is no extension. */
const extensionLengthMax = 20

/** Where a name ends and its extension begins; a dot at the beginning hides a file, and is no extension. */
const dotOf = (name: string): number => {
  const dot = name.lastIndexOf(".")
  return dot > 0 && name.length - dot <= extensionLengthMax ? dot : name.length
}

/**
 * A name of `A-Z a-z 0-9 . _ -` alone: each other code point becomes `_`. A longer one than 255 loses characters before its
 * extension. Source: contract/notify#attachments
 *
 * @param sent as it came; undefined or empty: `file`
 */
export const attachmentName = (sent: string | undefined): string => {
  if (sent === undefined || sent === "") return "file"
  const name = sent.replace(/[^A-Za-z0-9._-]/gsu, "_")
  // Names of directories.
  if (name === "." || name === "..") return "file"
  if (name.length <= nameLengthMax) return name
  const extension = name.slice(dotOf(name))
  return name.slice(0, nameLengthMax - extension.length) + extension
}

/**
 * The type of a file: as it was sent, where that says something, else by the name's extension.
 * Source: contract/notify#attachments
 *
 * @param name as `attachmentName` made it
 */
export const attachmentType = (sent: string | undefined, name: string): string => fileType(sent ?? "", name)
