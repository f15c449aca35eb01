import * as Dialog from '@radix-ui/react-dialog'
import type { ReactElement } from 'react'
import { LoginForm } from './login-form.tsx'

/** Over a page that was open when the session ended, as it does when the gateway starts anew: log in, and go on there. */
export function SessionEnded({ user }: { user: string }): ReactElement {
  return (
    <Dialog.Root open>
      <Dialog.Portal>
        <div className="backdrop" />
        <Dialog.Content
          className="session-ended"
          aria-describedby={undefined}
          onEscapeKeyDown={(event) => event.preventDefault()}
          onInteractOutside={(event) => event.preventDefault()}
        >
          <Dialog.Title className="dialog-title">Your session has ended</Dialog.Title>
          <p className="dim">It ends when the gateway starts anew. What is behind this is from before.</p>
          <LoginForm before={user} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
