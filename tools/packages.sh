# SPDX-License-Identifier: Apache-2.0
# tools/packages.sh - the packages each step needs; sourced by the other tools
#
# The lists are the only place that names packages. Everything comes from the host's own apt sources.

packages_build="gcc libc6-dev meson ninja-build pkg-config python3
	libseccomp-dev libcap-dev libcjson-dev libmbedtls-dev libnl-3-dev libnl-route-3-dev"

# newuidmap, what makes an image, and the way out of sandboxes that have a network
packages_run="uidmap mmdebstrap ca-certificates passt slirp4netns"

# The same for Fedora. It has no mmdebstrap everywhere: import an image then (README, "Images").
packages_build_dnf="gcc meson ninja-build pkgconf-pkg-config python3
	libseccomp-devel libcap-devel cjson-devel mbedtls-devel libnl3-devel"
packages_run_dnf="shadow-utils ca-certificates passt slirp4netns"

# git: the tree's rules and the clean checkout of tests/fresh; binutils: nm; zstd: compressed imports
# nftables, iproute2: a host of the tests' own; nginx-light, caddy: in front of the server
packages_test="strace bubblewrap cppcheck python3 procps util-linux libcap2-bin file git binutils zstd xz-utils
	bzip2 attr openssl curl nftables iproute2 nginx-light caddy lintian groff-base"

# what tools/bench compares with, where it is there
packages_bench="bubblewrap nginx-light"

packages_cross="crossbuild-essential-arm64 libseccomp-dev:arm64 libcap-dev:arm64 libcjson-dev:arm64
	libmbedtls-dev:arm64 libnl-3-dev:arm64 libnl-route-3-dev:arm64 qemu-user-static"

# tools/package, and what judges what it made
packages_package="dpkg-dev xz-utils"

packages_guest="qemu-system-x86 qemu-utils qemu-system-arm qemu-user-static binfmt-support arch-test mmdebstrap
	busybox-static cpio kmod xz-utils bc e2fsprogs"

# install_packages NAME... - only what is missing, by name, waiting for another apt to end
install_packages() {
	missing=
	for name in "$@"; do
		dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null | grep -q '^ii' || missing="$missing $name"
	done
	[ -n "$missing" ] || return 0
	echo "installing:$missing"
	DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 update >&2
	# shellcheck disable=SC2086 # a list of names
	DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
		-o DPkg::Lock::Timeout=300 install $missing >&2
}

# become_root "$@" - start this script again through sudo when it was started by an ordinary user
become_root() {
	[ "$(id -u)" = 0 ] && return 0
	command -v sudo >/dev/null || {
		echo "$0: needs root: run it as root, or install sudo" >&2
		exit 1
	}
	exec sudo --preserve-env=SANDBOX_MUST_WORK,CI -- "$0" "$@"
}
