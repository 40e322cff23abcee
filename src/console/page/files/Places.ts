import type { View } from "../view/View.ts"

export const path = "files"

/** The directories at the top. */
export const rootView: View = { room: path, params: {} }

/** A directory, by its path: `bucket/a/b`; empty: the root. */
export const directoryView = (of: string): View =>
  of === "" ? rootView : { room: path, params: { path: of } }

/** A file, by its id; a version's will do to find it. */
export const fileView = (id: string): View => ({ room: path, params: { file: id } })

export const searchView = (words: string): View => ({ room: path, params: { q: words } })

/** The pages beside the tree. */
export const sections = { links: "Links", devices: "Devices", trash: "Trash" } as const

export type Section = keyof typeof sections

export const sectionView = (section: Section): View => ({ room: path, params: { show: section } })

export const isSection = (text: string | undefined): text is Section =>
  text !== undefined && Object.hasOwn(sections, text)

/** The path of the directory that a path is in. */
export const parentOf = (of: string): string => of.slice(0, Math.max(0, of.lastIndexOf("/")))

export const below = (directory: string, name: string): string =>
  directory === "" ? name : `${directory}/${name}`
