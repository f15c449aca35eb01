import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, type ReactElement, useId } from 'react'
import { type ApiError, postJson } from '../api.ts'
import type { SessionBody } from '../wire.ts'

/** Opens a session. `before` is who was logged in on this page: for another person nothing of it is kept. */
export function LoginForm({ before }: { before?: string }): ReactElement {
  const client = useQueryClient()
  const id = useId()
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
    <form className="login-form" onSubmit={submit}>
      {/* For password managers: one person may hold keys of several gateways. */}
      <input type="text" name="username" autoComplete="username" defaultValue="toolgate" hidden />
      <div className="field">
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
      </div>
      {login.error && (
        <p className="problem" role="alert">
          {login.error.message}
        </p>
      )}
      <button type="submit" className="main" disabled={login.isPending}>
        {login.isPending ? 'Logging in…' : 'Log in'}
      </button>
      <p id={`${id}-help`} className="help">
        The gateway prints it when it starts: <code>demo-console</code> in the quickstart. An agent’s key does not open
        this page.
      </p>
    </form>
  )
}
