import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, type RefObject, type SubmitEvent, useContext, useId, useState } from 'react'
import { type ApiError, postJson } from '../api.ts'
import { useApi } from '../hooks.ts'
import { type KeyRow, LIVES, toChoices } from '../keys.ts'
import { Session } from '../session.ts'
import type { AppsBody, NewKeyBody, NewKeyRequestBody } from '../wire.ts'
import { Exact } from './exact.tsx'

export interface NewKeyDialogProps {
  readonly dialog: RefObject<HTMLDialogElement | null>
  readonly keys: readonly KeyRow[]
}

/** Asks whose key to make, and then shows it: once, as nothing keeps it. */
export function NewKeyDialog({ dialog, keys }: NewKeyDialogProps): ReactElement {
  const id = useId()
  const [opened, setOpened] = useState(0)
  return (
    <dialog
      ref={dialog}
      className="form-dialog"
      aria-labelledby={`${id}-title`}
      // A new form at each opening: the key is nowhere any longer.
      onClose={() => setOpened(opened + 1)}
    >
      <h2 id={`${id}-title`}>Make a key</h2>
      <NewKey key={opened} id={id} keys={keys} close={() => dialog.current?.close()} />
    </dialog>
  )
}

interface NewKeyProps {
  readonly id: string
  readonly keys: readonly KeyRow[]
  readonly close: () => void
}

function NewKey({ id, keys, close }: NewKeyProps): ReactElement {
  const client = useQueryClient()
  const make = useMutation<NewKeyBody, ApiError, NewKeyRequestBody>({
    mutationFn: (body) => postJson('/api/keys', body),
    // It is not kept with what was fetched.
    gcTime: 0,
    onSettled: () => client.invalidateQueries({ queryKey: ['keys'] }),
  })
  if (make.data) return <Made id={id} made={make.data} close={close} />
  return <NewKeyForm id={id} keys={keys} close={close} make={make.mutate} error={make.error} isOff={make.isPending} />
}

interface NewKeyFormProps extends NewKeyProps {
  readonly make: (body: NewKeyRequestBody) => void
  readonly error: ApiError | null
  readonly isOff: boolean
}

function NewKeyForm({ id, keys, close, make, error, isOff }: NewKeyFormProps): ReactElement {
  const { user = '' } = useContext(Session) ?? {}
  const { apps = [] } = useApi<AppsBody>({ key: ['apps'], path: '/api/apps' }).data ?? {}
  const choices = toChoices(keys, user)
  const [at, setAt] = useState(0)
  const chosen = choices[at]?.asked

  function submit(event: SubmitEvent<HTMLFormElement>): void {
    event.preventDefault()
    if (!chosen) return
    const form = new FormData(event.currentTarget)
    const textsOf = (field: string) => form.getAll(field).filter((value) => typeof value === 'string')
    const [name = '', only] = [textsOf('id')[0]?.trim(), textsOf('app')]
    const life = LIVES[Number(textsOf('life')[0])]?.ms
    make({
      ...chosen,
      ...(name === '' ? {} : { id: name }),
      ...(only.length === 0 ? {} : { apps: only }),
      ...(life === undefined ? {} : { expiresAt: Date.now() + life }),
    })
  }
  return (
    <form onSubmit={submit}>
      <div className="field">
        <label htmlFor={`${id}-whose`}>Whose</label>
        <select id={`${id}-whose`} value={at} onChange={(event) => setAt(Number(event.target.value))}>
          {choices.map(({ text }, i) => (
            <option key={text} value={i}>
              {text}
            </option>
          ))}
        </select>
      </div>
      <div className="form-fields">
        <div className="field">
          <label htmlFor={`${id}-life`}>Valid for</label>
          <select id={`${id}-life`} name="life" defaultValue="1">
            {LIVES.map(({ text }, i) => (
              <option key={text} value={i}>
                {text}
              </option>
            ))}
          </select>
        </div>
        <div className="field">
          <label htmlFor={`${id}-id`}>Name (optional)</label>
          <input
            id={`${id}-id`}
            name="id"
            maxLength={64}
            spellCheck={false}
            autoComplete="off"
            placeholder="vera-laptop"
          />
        </div>
      </div>
      {chosen?.for === 'mcp' && apps.length > 0 && (
        <fieldset className="key-apps">
          <legend>Only for these apps (none checked: all apps)</legend>
          {apps.map(({ name }) => (
            <label key={name}>
              <input type="checkbox" name="app" value={name} /> <Exact text={name} />
            </label>
          ))}
        </fieldset>
      )}
      {error && (
        <p className="problem" role="alert">
          <Exact text={error.message} />
        </p>
      )}
      <div className="form-buttons">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="submit" className="main" disabled={isOff || !chosen}>
          Make the key
        </button>
      </div>
    </form>
  )
}

/** The key itself. It is gone when the dialog closes. */
function Made({ id, made, close }: { id: string; made: NewKeyBody; close: () => void }): ReactElement {
  const [note, setNote] = useState('')
  const copy = () =>
    navigator.clipboard.writeText(made.key).then(
      () => setNote('Copied.'),
      () => setNote('The browser does not let this page copy: select the key.'),
    )
  return (
    <div className="made-key">
      <p>
        <Exact text={made.id} className="id" /> of <Exact text={made.user ?? ''} className="strong" /> works now. The
        key is shown this once, and nothing keeps it.
      </p>
      <div className="field">
        <label htmlFor={`${id}-made`}>The key</label>
        <div className="with-button">
          <input
            id={`${id}-made`}
            className="id"
            value={made.key}
            readOnly
            autoFocus
            onFocus={(event) => event.target.select()}
          />
          <button type="button" onClick={() => void copy()}>
            Copy
          </button>
        </div>
      </div>
      <p role="status">{note}</p>
      <div className="form-buttons">
        <button type="button" className="main" onClick={close}>
          Done
        </button>
      </div>
    </div>
  )
}
