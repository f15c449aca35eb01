import { type ReactElement, useContext } from 'react'
import { linkTo } from '../address.ts'
import { useChoices } from '../hooks.ts'
import { mayManageKeys } from '../keys.ts'
import { AllKeys } from '../parts/key-table.tsx'
import { CallerMatrix } from '../parts/matrix.tsx'
import { PageHead } from '../parts/panels.tsx'
import { PeopleList } from '../parts/people-list.tsx'
import { Session } from '../session.ts'

interface PeopleView {
  readonly name: string
  readonly title: string
  readonly Content: () => ReactElement
  /** Whether only people who may manage keys see it. The gateway decides; this only hides it. */
  readonly isForOperators?: true
}

const VIEWS: readonly [PeopleView, ...PeopleView[]] = [
  { name: '', title: 'People', Content: PeopleList },
  { name: 'matrix', title: 'Who sees what', Content: CallerMatrix },
  { name: 'keys', title: 'Keys', Content: AllKeys, isForOperators: true },
]

/** Shows the people who can use this gateway, and their access. */
export function PeoplePage(): ReactElement {
  const view = useChoices()('view')
  const session = useContext(Session)
  const views = VIEWS.filter(({ isForOperators }) => !isForOperators || (session && mayManageKeys(session)))
  const { name, Content } = VIEWS.find((one) => one.name === view) ?? VIEWS[0]
  return (
    <>
      <PageHead title="People and keys" about="Who can use this gateway, and how." />
      <nav className="views" aria-label="Views of people">
        {views.map((one) => (
          <a
            key={one.name}
            href={linkTo('people', { view: one.name })}
            aria-current={one.name === name ? 'page' : undefined}
          >
            {one.title}
          </a>
        ))}
      </nav>
      <Content />
    </>
  )
}
