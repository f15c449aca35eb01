import { personStoreContract } from '@toolgate/testing'
import { memoryPeople } from './people.ts'

personStoreContract('memoryPeople', async (_t, options) => {
  const store = memoryPeople(options)
  return { store, beside: async () => store }
})
