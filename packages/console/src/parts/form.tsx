import { type ReactElement, type ReactNode, Fragment, useId, useRef, useState } from 'react'
import { Exact } from './exact.tsx'

interface FieldProps {
  readonly label: ReactNode
  readonly isGrowing?: boolean
  /** Whether the label is for screen readers only. */
  readonly isUnseen?: boolean
  /** Renders the control, with the id that its label refers to. */
  readonly children: (id: string) => ReactNode
}

/** Shows a control below its label. */
export function Field({ label, isGrowing = false, isUnseen = false, children }: FieldProps): ReactElement {
  const id = useId()
  return (
    <div className={isGrowing ? 'field grow' : 'field'}>
      <label htmlFor={id} className={isUnseen ? 'unseen' : undefined}>
        {label}
      </label>
      {children(id)}
    </div>
  )
}

/** A value, with its text if they differ. */
type Option = string | readonly [value: string, text: string]

interface SelectProps extends Pick<FieldProps, 'label' | 'isUnseen'> {
  readonly options: readonly Option[]
  readonly value: string
  readonly apply: (value: string) => void
}

export function Select({ options, value, apply, ...field }: SelectProps): ReactElement {
  return (
    <Field {...field}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => apply(event.target.value)}>
          {options.map((option) => {
            const [key, text] = typeof option === 'string' ? [option, option] : option
            return (
              <option key={key} value={key}>
                {text}
              </option>
            )
          })}
        </select>
      )}
    </Field>
  )
}

/** Shows a problem, and announces it at once. It is empty without a text. */
export function Problem({ text }: { text: string | undefined }): ReactElement | null {
  if (text === undefined || text === '') return null
  return (
    <p className="problem" role="alert">
      <Exact text={text} />
    </p>
  )
}

interface DialogButtonProps {
  readonly label: ReactNode
  readonly className?: string | undefined
  /** Called just before the dialog opens. */
  readonly onOpen?: () => void
  readonly onClose?: () => void
  readonly title: ReactNode
  readonly about?: string
  readonly children: (close: () => void) => ReactNode
}

/**
 * A button and its dialog. A native dialog keeps the focus, closes on Escape, and returns the focus. Its content is
 * created at each opening, so that fields are empty.
 */
export function DialogButton(props: DialogButtonProps): ReactElement {
  const { label, className, onOpen, onClose, title, about, children } = props
  const id = useId()
  const dialog = useRef<HTMLDialogElement>(null)
  const [opened, setOpened] = useState(0)
  return (
    <>
      <button
        type="button"
        className={className}
        onClick={() => {
          onOpen?.()
          dialog.current?.showModal()
        }}
      >
        {label}
      </button>
      <dialog
        ref={dialog}
        className="form-dialog"
        aria-labelledby={`${id}-title`}
        aria-describedby={about === undefined ? undefined : `${id}-about`}
        onClose={() => {
          setOpened(opened + 1)
          onClose?.()
        }}
      >
        <h2 id={`${id}-title`}>{title}</h2>
        {about !== undefined && (
          <p id={`${id}-about`} className="dim">
            {about}
          </p>
        )}
        <Fragment key={opened}>{children(() => dialog.current?.close())}</Fragment>
      </dialog>
    </>
  )
}

interface DialogButtonsProps {
  /** The text of the button that closes the dialog. */
  readonly cancel: string
  readonly close: () => void
  readonly children?: ReactNode
}

export function DialogButtons({ cancel, close, children }: DialogButtonsProps): ReactElement {
  return (
    <div className="form-buttons">
      <button type="button" onClick={close}>
        {cancel}
      </button>
      {children}
    </div>
  )
}
