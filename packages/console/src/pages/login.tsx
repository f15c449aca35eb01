import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, type ReactElement, useId } from 'react'
import { type ApiError, postJson } from '../api.ts'
import { GateMark } from '../parts/gate-mark.tsx'
import type { SessionBody } from '../wire.ts'

export function LoginPage(): ReactElement {
  const client = useQueryClient()
  const id = useId()
  const login = useMutation<SessionBody, ApiError, string>({
    mutationFn: (key) => postJson('/api/login', { key }),
    onSuccess: () => client.resetQueries(),
  })
  function submit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault()
    const key = new FormData(event.currentTarget).get('key')
    login.mutate(typeof key === 'string' ? key.trim() : '')
  }
  return (
    <main className="alone">
      <form className="login" onSubmit={submit}>
        <GateMark />
        <h1>Toolgate</h1>
        <p>Which tools each agent sees, why not the others, and what they did.</p>
        {/* For password managers: one person may hold keys of several gateways. */}
        <input type="text" name="username" autoComplete="username" defaultValue="toolgate" hidden />
        <label htmlFor={id}>Console key</label>
        <input
          id={id}
          name="key"
          type="password"
          autoComplete="current-password"
          required
          maxLength={512}
          spellCheck={false}
          aria-invalid={login.isError}
          aria-describedby={`${id}-help`}
        />
        {login.error && (
          <p className="problem" role="alert">
            {login.error.message}
          </p>
        )}
        <button type="submit" className="main" disabled={login.isPending}>
          {login.isPending ? 'Logging in…' : 'Log in'}
        </button>
        <p id={`${id}-help`} className="help">
          The gateway prints it when it starts: <code>demo-console</code> in the quickstart. An agent’s key does not
          open this page.
        </p>
      </form>
    </main>
  )
}
