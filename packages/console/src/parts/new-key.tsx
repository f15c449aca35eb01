import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, type SubmitEvent, useContext, useState } from 'react'
import { type ApiError, postJson } from '../api.ts'
import { useApi } from '../hooks.ts'
import { type KeyRow, LIVES, toChoices } from '../keys.ts'
import { Session } from '../session.ts'
import type { AppsBody, NewKeyBody, NewKeyRequestBody } from '../wire.ts'
import { Exact } from './exact.tsx'
import { DialogButton, DialogButtons, Field, Problem, Select } from './form.tsx'

/** Asks for the user of a new key, and then shows the key once, because it is not stored. */
export function NewKeyButton({ keys }: { keys: readonly KeyRow[] }): ReactElement {
  return (
    <DialogButton label="Make a key…" className="main" title="Make a key">
      {(close) => <NewKey keys={keys} close={close} />}
    </DialogButton>
  )
}

interface NewKeyProps {
  readonly keys: readonly KeyRow[]
  readonly close: () => void
}

function NewKey({ keys, close }: NewKeyProps): ReactElement {
  const client = useQueryClient()
  const make = useMutation<NewKeyBody, ApiError, NewKeyRequestBody>({
    mutationFn: (body) => postJson('/api/keys', body),
    // The key must not stay in the cache.
    gcTime: 0,
    onSettled: () => client.invalidateQueries({ queryKey: ['keys'] }),
  })
  if (make.data) return <Made made={make.data} close={close} />
  return <NewKeyForm keys={keys} close={close} make={make.mutate} error={make.error} isOff={make.isPending} />
}

interface NewKeyFormProps extends NewKeyProps {
  readonly make: (body: NewKeyRequestBody) => void
  readonly error: ApiError | null
  readonly isOff: boolean
}

function NewKeyForm({ keys, close, make, error, isOff }: NewKeyFormProps): ReactElement {
  const { user = '' } = useContext(Session) ?? {}
  const choices = toChoices(keys, user)
  const [at, setAt] = useState(0)
  const [life, setLife] = useState('1')
  const chosen = choices[at]?.asked

  function submit(event: SubmitEvent<HTMLFormElement>): void {
    event.preventDefault()
    if (!chosen) return
    const form = new FormData(event.currentTarget)
    const textsOf = (field: string) => form.getAll(field).filter((value) => typeof value === 'string')
    const [name = '', only] = [textsOf('id')[0]?.trim(), textsOf('app')]
    const lifeMs = LIVES[Number(life)]?.ms
    make({
      ...chosen,
      ...(name === '' ? {} : { id: name }),
      ...(only.length === 0 ? {} : { apps: only }),
      ...(lifeMs === undefined ? {} : { expiresAt: Date.now() + lifeMs }),
    })
  }
  return (
    <form onSubmit={submit}>
      <Select
        label="Whose"
        options={choices.map(({ text }, i) => [String(i), text])}
        value={String(at)}
        apply={(to) => setAt(Number(to))}
      />
      <div className="form-fields">
        <Select
          label="Valid for"
          options={LIVES.map(({ text }, i) => [String(i), text])}
          value={life}
          apply={setLife}
        />
        <Field label="Name (optional)">
          {(id) => (
            <input id={id} name="id" maxLength={64} spellCheck={false} autoComplete="off" placeholder="vera-laptop" />
          )}
        </Field>
      </div>
      {chosen?.for === 'mcp' && <Apps />}
      <Problem text={error?.message} />
      <DialogButtons cancel="Cancel" close={close}>
        <button type="submit" className="main" disabled={isOff || !chosen}>
          Make the key
        </button>
      </DialogButtons>
    </form>
  )
}

function Apps(): ReactElement | null {
  const { apps = [] } = useApi<AppsBody>({ key: ['apps'], path: '/api/apps' }).data ?? {}
  if (apps.length === 0) return null
  return (
    <fieldset className="row loose key-apps">
      <legend>Only for these apps (none checked: all apps)</legend>
      {apps.map(({ name }) => (
        <label key={name}>
          <input type="checkbox" name="app" value={name} /> <Exact text={name} />
        </label>
      ))}
    </fieldset>
  )
}

/** Shows the key. It disappears when the dialog closes. */
function Made({ made, close }: { made: NewKeyBody; close: () => void }): ReactElement {
  const [note, setNote] = useState('')
  const copy = () =>
    navigator.clipboard.writeText(made.key).then(
      () => setNote('Copied.'),
      () => setNote('The browser does not let this page copy: select the key.'),
    )
  return (
    <div className="dialog-body">
      <p>
        <Exact text={made.id} className="id" /> of <Exact text={made.user ?? ''} className="strong" /> works now. The
        key is shown this once, and nothing keeps it.
      </p>
      <Field label="The key">
        {(id) => (
          <div className="with-button">
            <input
              id={id}
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
        )}
      </Field>
      <p role="status">{note}</p>
      <div className="form-buttons">
        <button type="button" className="main" onClick={close}>
          Done
        </button>
      </div>
    </div>
  )
}
