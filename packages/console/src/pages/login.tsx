import * as Dialog from '@radix-ui/react-dialog'
import { type ReactElement, type FormEvent, useId } from 'react'
import { Field, Problem } from '../parts/form.tsx'
import { GateMark } from '../parts/header.tsx'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ApiError, getJson, postJson } from '../api.ts'
import type { LoginsBody, SessionBody } from '../wire.ts'

export function LoginPage(): ReactElement {
  return (
    <main className="alone">
      <div className="card stack loose login">
        <GateMark />
        <h1>Toolgate</h1>
        <p>Which tools each agent sees, why not the others, and what they did.</p>
        <LoginForm />
      </div>
    </main>
  )
}

/** Shows a login over the open page when the session has ended, such as after a restart of the gateway. */
export function SessionEnded({ user }: { user: string }): ReactElement {
  return (
    <Dialog.Root open>
      <Dialog.Portal>
        <div className="backdrop" />
        <Dialog.Content
          className="stack loose session-ended"
          aria-describedby={undefined}
          onEscapeKeyDown={(event) => event.preventDefault()}
          onInteractOutside={(event) => event.preventDefault()}
        >
          <Dialog.Title className="dialog-title">Your session has ended</Dialog.Title>
          <p className="dim">Sessions end when the gateway restarts. The page behind this is out of date.</p>
          <LoginForm before={user} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

/** Logs in. `before` is the previous user of this page. For another user, all loaded data is dropped. */
function LoginForm({ before }: { before?: string }): ReactElement {
  const client = useQueryClient()
  const help = useId()
  const login = useMutation<SessionBody, ApiError, string>({
    mutationFn: (key) => postJson('/api/login', { key }),
    async onSuccess(session) {
      if (session.user === before) await client.invalidateQueries()
      else await client.resetQueries()
    },
  })
  function submit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault()
    const key = new FormData(event.currentTarget).get('key')
    login.mutate(typeof key === 'string' ? key.trim() : '')
  }
  return (
    <form className="stack loose login-form" onSubmit={submit}>
      <OtherLogin />
      {/* For password managers: one person may hold keys of several gateways. */}
      <input type="text" name="username" autoComplete="username" defaultValue="toolgate" hidden />
      <Field label="Console key">
        {(id) => (
          <input
            id={id}
            name="key"
            type="password"
            autoComplete="current-password"
            // Nothing else on the page is for the keyboard.
            autoFocus={before === undefined}
            required
            maxLength={512}
            spellCheck={false}
            aria-invalid={login.isError}
            aria-describedby={help}
          />
        )}
      </Field>
      <Problem text={login.error?.message} />
      <button type="submit" className="main" disabled={login.isPending}>
        {login.isPending ? 'Logging in…' : 'Log in'}
      </button>
      <p id={help} className="help">
        The gateway prints it at startup: <code>demo-console</code> in the quickstart. An agent’s key does not open this
        page.
      </p>
    </form>
  )
}

/** Shows the login at an authorization server, if the gateway has one. */
function OtherLogin(): ReactElement | undefined {
  const { data } = useQuery({
    queryKey: ['logins'],
    queryFn: ({ signal }) => getJson<LoginsBody>('/api/login', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  })
  return data?.oidc && <a href={data.oidc.url}>Log in with {data.oidc.name}</a>
}
