import { useLayoutEffect, useRef } from "preact/hooks"
import { type Choice, chosenBy, chosenIn } from "./Chosen.ts"
import { openPicker } from "./Handles.ts"

interface ChooseFilesProps {
  readonly files: string
  readonly folder: string
  onChosen(choice: Choice): void
}

/** Buttons to choose files, or a folder with all that is in it. */
export const ChooseFiles = ({ files, folder, onChosen }: ChooseFilesProps) => {
  const fileField = useRef<HTMLInputElement>(null)
  const folderField = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => {
    if (folderField.current !== null) folderField.current.webkitdirectory = true
  }, [])
  const chooseFiles = async (): Promise<void> => {
    const open = openPicker()
    if (open === undefined) return fileField.current?.click()
    const handles = await open({ multiple: true }).catch((error: unknown) => {
      // The person chose nothing.
      if (error instanceof DOMException) return []
      throw error
    })
    if (handles.length > 0) onChosen(await chosenBy(handles))
  }
  const onChange = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void => {
    if (currentTarget.files !== null) onChosen(chosenIn(currentTarget.files))
    // The same files can be chosen again.
    currentTarget.value = ""
  }
  return (
    <>
      <button type="button" onClick={() => void chooseFiles()}>
        {files}
      </button>
      <button type="button" onClick={() => folderField.current?.click()}>
        {folder}
      </button>
      <input ref={fileField} type="file" multiple hidden aria-label={files} onChange={onChange} />
      <input ref={folderField} type="file" multiple hidden aria-label={folder} onChange={onChange} />
    </>
  )
}
