/**
 * Handles of files and directories, which a browser can keep over a reload: the page may read them again once the person
 * gives leave. Source: File System Access, and File System Standard. Firefox and Safari do not give them for what is
 * dropped.
 */

type Leave = "granted" | "denied" | "prompt"

/** Methods that the types of the DOM leave out. */
type Asking = FileSystemHandle & {
  queryPermission?(options: { readonly mode: "read" }): Promise<Leave>
  requestPermission?(options: { readonly mode: "read" }): Promise<Leave>
}

/** A handle, and the way from it to a file: none where it is the file's own. */
export interface HandledFile {
  readonly root: FileSystemHandle
  readonly names: ReadonlyArray<string>
}

type Opener = (options: { readonly multiple: true }) => Promise<ReadonlyArray<FileSystemFileHandle>>

/** The browser's way to choose files with handles; undefined: a field for files has to do. */
export const openPicker = (): Opener | undefined => {
  const { showOpenFilePicker } = window as { showOpenFilePicker?: Opener }
  return showOpenFilePicker?.bind(window)
}

export const mayRead = async (root: FileSystemHandle): Promise<boolean> =>
  (await (root as Asking).queryPermission?.({ mode: "read" })) === "granted"

/** Asks the person, who must have pressed something just now. */
export const askToRead = async (root: FileSystemHandle): Promise<boolean> =>
  (await (root as Asking).requestPermission?.({ mode: "read" })) === "granted"

/** The file; undefined where it is not there any more. */
export const fileOf = async ({ names, root }: HandledFile): Promise<File | undefined> => {
  try {
    let at = root
    for (const [index, name] of names.entries()) {
      const directory = at as FileSystemDirectoryHandle
      at =
        index === names.length - 1
          ? await directory.getFileHandle(name)
          : await directory.getDirectoryHandle(name)
    }
    return await (at as FileSystemFileHandle).getFile()
  } catch (error) {
    if (error instanceof DOMException) return undefined
    throw error
  }
}
