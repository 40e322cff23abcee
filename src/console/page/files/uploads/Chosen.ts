import type { HandledFile } from "./Handles.ts"

/** A file that the person chose or dropped. */
export interface Chosen {
  readonly file: File
  /** from what was chosen on, with `/` between the names: `photos/2026/a.jpg` */
  readonly path: string
  readonly handled: HandledFile | undefined
}

/** All that the person chose or dropped at once. */
export interface Choice {
  readonly files: ReadonlyArray<Chosen>
  /** directories without files, as paths */
  readonly emptyDirectories: ReadonlyArray<string>
  /** could not be read */
  readonly unread: ReadonlyArray<string>
}

interface Gathered {
  readonly files: Array<Chosen>
  readonly emptyDirectories: Array<string>
  readonly unread: Array<string>
}

const nothingGathered = (): Gathered => ({ files: [], emptyDirectories: [], unread: [] })

/** Of a field for files, or for a directory. */
export const chosenIn = (list: FileList): Choice => ({
  ...nothingGathered(),
  files: Array.from(list, (file) => ({
    file,
    path: file.webkitRelativePath === "" ? file.name : file.webkitRelativePath,
    handled: undefined
  }))
})

/** Of the browser's way to choose files with handles. */
export const chosenBy = async (handles: ReadonlyArray<FileSystemFileHandle>): Promise<Choice> => {
  const gathered = nothingGathered()
  for (const root of handles) await addHandle(gathered, root, root, [])
  return gathered
}

interface Dropped {
  readonly handle: Promise<FileSystemHandle | null>
  readonly entry: FileSystemEntry | null
}

type WithHandle = DataTransferItem & { getAsFileSystemHandle?(): Promise<FileSystemHandle | null> }

/** Reads what was dropped, directories with all that is below them. What can be read, is: the rest is named. */
export const droppedIn = async ({ items }: DataTransfer): Promise<Choice> => {
  // All at once: the browser forgets the items when the event is over.
  const dropped = Array.from(items, (item: WithHandle): Dropped | undefined =>
    item.kind === "file"
      ? { handle: handleOf(item.getAsFileSystemHandle?.()), entry: item.webkitGetAsEntry() }
      : undefined
  )
  const gathered = nothingGathered()
  for (const one of dropped) {
    if (one === undefined) continue
    const root = await one.handle
    if (root !== null) await addHandle(gathered, root, root, [])
    else if (one.entry !== null) await addEntry(gathered, one.entry)
  }
  return gathered
}

/** A browser gives no handle of some directories, and the files of all; others give none at all. */
const handleOf = async (
  given: Promise<FileSystemHandle | null> | undefined
): Promise<FileSystemHandle | null> => {
  try {
    return (await given) ?? null
  } catch (error) {
    if (error instanceof DOMException) return null
    throw error
  }
}

const addHandle = async (
  gathered: Gathered,
  root: FileSystemHandle,
  handle: FileSystemHandle,
  names: ReadonlyArray<string>
): Promise<void> => {
  const path = [root.name, ...names].join("/")
  try {
    if (handle.kind === "file") {
      const file = await (handle as FileSystemFileHandle).getFile()
      gathered.files.push({ file, path, handled: { root, names } })
      return
    }
    let isEmpty = true
    for await (const child of (handle as FileSystemDirectoryHandle).values()) {
      isEmpty = false
      await addHandle(gathered, root, child, [...names, child.name])
    }
    if (isEmpty) gathered.emptyDirectories.push(path)
  } catch (error) {
    if (!(error instanceof DOMException)) throw error
    gathered.unread.push(path)
  }
}

const addEntry = async (gathered: Gathered, entry: FileSystemEntry): Promise<void> => {
  const path = entry.fullPath.replace(/^\//, "")
  try {
    if (entry.isFile) {
      const file = await new Promise<File>((resolve, reject) =>
        (entry as FileSystemFileEntry).file(resolve, reject)
      )
      gathered.files.push({ file, path, handled: undefined })
      return
    }
    const children = await childrenOf(entry as FileSystemDirectoryEntry)
    if (children.length === 0) gathered.emptyDirectories.push(path)
    for (const child of children) await addEntry(gathered, child)
  } catch (error) {
    if (!(error instanceof DOMException)) throw error
    gathered.unread.push(path)
  }
}

/** A reader answers some entries at a time, and none at the end. */
const childrenOf = async (directory: FileSystemDirectoryEntry): Promise<ReadonlyArray<FileSystemEntry>> => {
  const reader = directory.createReader()
  const all: Array<FileSystemEntry> = []
  for (;;) {
    const some = await new Promise<Array<FileSystemEntry>>((resolve, reject) =>
      reader.readEntries(resolve, reject)
    )
    if (some.length === 0) return all
    all.push(...some)
  }
}
