import type { ComponentChildren } from "preact"
import { useId, useLayoutEffect, useRef } from "preact/hooks"
import "./Modal.css"

interface ModalProps {
  readonly title: string
  onClose(): void
  readonly children: ComponentChildren
}

/** A dialog in front of the page: it keeps the focus while it is open, and gives it back to what opened it. */
export const Modal = ({ children, onClose, title }: ModalProps) => {
  const id = useId()
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const opener = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
      else document.getElementById("main")?.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class="modal"
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => {
        // The ground behind it is the dialog itself.
        if (event.target === dialog.current) dialog.current?.close()
      }}
    >
      <div class="modal-body">
        <div class="modal-head">
          <h2 id={id}>{title}</h2>
          <button type="button" class="plain" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
        {children}
      </div>
    </dialog>
  )
}
