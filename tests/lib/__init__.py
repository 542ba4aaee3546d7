# SPDX-License-Identifier: Apache-2.0
"""What the tests of the whole program share: worlds to run it in, clients, and the protocol of results."""
