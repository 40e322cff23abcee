import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { type Choice, droppedIn } from "./Chosen.ts"

interface DropZoneProps {
  /** where dropped files go: `photos` */
  readonly to: string
  onChosen(choice: Choice): void
  readonly children: ComponentChildren
}

const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer?.types.includes("Files") === true

/** A file that is dropped beside the list would take the place of the page, and end what is on its way. */
export const useStrayDrops = (): void => {
  useEffect(() => {
    const controller = new AbortController()
    const refuse = (event: DragEvent): void => {
      if (event.defaultPrevented || event.dataTransfer === null || !hasFiles(event)) return
      event.preventDefault()
      event.dataTransfer.dropEffect = "none"
    }
    for (const name of ["dragover", "drop"] as const)
      addEventListener(name, refuse, { signal: controller.signal })
    return () => controller.abort()
  }, [])
}

/** Takes files and folders that are dropped on what is in it. Buttons do the same for the keyboard. */
export const DropZone = ({ children, onChosen, to }: DropZoneProps) => {
  const [isOver, setOver] = useState(false)
  const onDragOver = (event: DragEvent): void => {
    if (!hasFiles(event)) return
    event.preventDefault()
    if (event.dataTransfer !== null) event.dataTransfer.dropEffect = "copy"
    setOver(true)
  }
  const onDragLeave = (event: DragEvent & { readonly currentTarget: HTMLElement }): void => {
    if (!(event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget)))
      setOver(false)
  }
  const onDrop = (event: DragEvent): void => {
    if (!hasFiles(event) || event.dataTransfer === null) return
    event.preventDefault()
    setOver(false)
    void droppedIn(event.dataTransfer).then(onChosen)
  }
  return (
    <div
      class={isOver ? "drop-zone over" : "drop-zone"}
      onDragEnter={onDragOver}
      onDragOver={onDragOver}
      onDragLeave={onDragLeave}
      onDrop={onDrop}
    >
      {children}
      {isOver && (
        <p class="drop-note" aria-hidden="true">
          Drop to upload to {to}
        </p>
      )}
    </div>
  )
}
