import { type ReactElement, useId } from 'react'

interface OneOfProps {
  readonly label: string
  readonly every: string
  readonly values: readonly string[]
  readonly value: string
  readonly apply: (value: string) => void
}

/** A filter with a few values. */
export function OneOf({ label, every, values, value, apply }: OneOfProps): ReactElement {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => apply(event.target.value)}>
        <option value="">{every}</option>
        {value !== '' && !values.includes(value) && <option>{value}</option>}
        {values.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </div>
  )
}

interface SearchFieldProps {
  readonly example: string
  readonly value: string
  readonly apply: (value: string) => void
}

/** A filter for words of a list, applied with each letter. */
export function SearchField({ example, value, apply }: SearchFieldProps): ReactElement {
  const id = useId()
  return (
    <div className="field grow">
      <label htmlFor={id}>Search</label>
      <input
        id={id}
        type="search"
        value={value}
        placeholder={example}
        maxLength={256}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => apply(event.target.value)}
      />
    </div>
  )
}

interface ExactlyProps {
  readonly label: string
  readonly example: string
  readonly value: string
  readonly apply: (value: string) => void
  /** Whether a part of the value is enough. */
  readonly isPart?: boolean
}

/** A filter for an exact value, applied when the reader has finished typing. */
export function Exactly({ label, example, value, apply, isPart = false }: ExactlyProps): ReactElement {
  const id = useId()
  return (
    <form
      className="field grow"
      onSubmit={(event) => {
        event.preventDefault()
        const typed = new FormData(event.currentTarget).get('value')
        apply(typeof typed === 'string' ? typed.trim() : '')
      }}
    >
      <label htmlFor={id}>{isPart ? label : `${label}, exactly`}</label>
      <input
        id={id}
        name="value"
        type="search"
        defaultValue={value}
        placeholder={example}
        maxLength={256}
        spellCheck={false}
        autoComplete="off"
        onBlur={(event) => event.target.value.trim() !== value && apply(event.target.value.trim())}
      />
    </form>
  )
}
