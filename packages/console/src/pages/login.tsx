import type { ReactElement } from 'react'
import { GateMark } from '../parts/gate-mark.tsx'
import { LoginForm } from '../parts/login-form.tsx'

export function LoginPage(): ReactElement {
  return (
    <main className="alone">
      <div className="login">
        <GateMark />
        <h1>Toolgate</h1>
        <p>Which tools each agent sees, why not the others, and what they did.</p>
        <LoginForm />
      </div>
    </main>
  )
}
