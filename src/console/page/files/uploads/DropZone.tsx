import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { type Choice, droppedIn } from "./Chosen.ts"

interface DropZoneProps {
  /** where dropped files go: `photos` */
  readonly to: string
  onChosen(choice: Choice): void
  readonly children: ComponentChildren
}

const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer?.types.includes("Files") === true

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
