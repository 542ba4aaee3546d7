# SPDX-License-Identifier: Apache-2.0
# tools/service/host.sh - what installing does to a host, however it is done
#
# Sourced by tools/install and tools/quickstart; tools/package copies it into the maintainer scripts of the
# Debian packages, which must work when the files of the package are gone. Functions only, POSIX shell, run
# as root unless a line says otherwise. Everything can be done twice.

# What MCP_PUBLIC_BASE is until somebody says better; the program refuses to serve with it.
placeholder=https://your.host:8443
units="mcp-sandbox-pods.service mcp-sandbox.service mcp-sandbox-gc.service mcp-sandbox-gc.timer"

# The ids of root's sandboxes, 65536 for each owner: those that the program takes anyway (runtime/userns.c),
# written down so that nobody is lent them.
service_user=mcp-sandbox ids_first=1610612736 ids_count=67108864

# free_ids USER FIRST COUNT - FIRST, or the next multiple of 65536 from which on COUNT ids are in nobody else's line
free_ids() {
	cat /etc/subuid /etc/subgid 2>/dev/null | awk -F: -v user="$1" -v first="$2" -v count="$3" '
		NF == 3 && $1 != user { low[NR] = $2; high[NR] = $2 + $3 }
		END {
			do {
				moved = 0
				for (i in low)
					if (first < high[i] && low[i] < first + count) {
						first = int((high[i] + 65535) / 65536) * 65536
						moved = 1
					}
			} while (moved)
			if (first + count > 4294967295) exit 1
			printf "%.0f\n", first
		}'
}

# lend_ids USER FIRST COUNT - give USER ids that belong to nobody, the same of both kinds, unless it has some
lend_ids() {
	touch /etc/subuid /etc/subgid
	has=$(sed -n "s/^$1:\([0-9]*\):.*/\1/p" /etc/subuid /etc/subgid | head -n 1)
	for kind in uid gid; do
		if grep -q -e "^$1:" -e "^$(id -u "$1"):" "/etc/sub$kind"; then
			continue
		fi
		lent=$(free_ids "$1" "${has:-$2}" "$3") || {
			echo "no $3 ids from $2 on are free in /etc/subuid and /etc/subgid" >&2
			return 1
		}
		usermod "--add-sub${kind}s" "$lent-$((lent + $3 - 1))" "$1" || return 1
		echo "lent the ids from $lent on to $1 in /etc/sub$kind"
	done
}

# make_service_user - nobody logs in or runs as this user: it stands for the ids
make_service_user() {
	if ! getent passwd "$service_user" >/dev/null; then
		useradd --system --user-group --no-create-home --home-dir /nonexistent \
			--shell /usr/sbin/nologin --comment "ids of mcp-sandbox" "$service_user" || return 1
	fi
	lend_ids "$service_user" "$ids_first" "$ids_count"
}

# drop_service_user - once no file has its ids any more
drop_service_user() {
	if getent passwd "$service_user" >/dev/null; then
		userdel "$service_user" 2>/dev/null || return 1
	fi
	sed -i "/^$service_user:/d" /etc/subuid /etc/subgid
}

random_hex() {
	od -An -tx1 -N32 /dev/urandom | tr -d ' \n'
}

# make_settings TEMPLATE FILE - once, with a token and a key that nobody else has; readable by its owner alone.
# For an ordinary user as well. Secrets never stand on a command line.
make_settings() {
	if [ ! -e "$2" ]; then
		(
			umask 077
			while IFS= read -r line; do
				case $line in
				MCP_TOKEN= | MCP_SIGN_KEY=) line=$line$(random_hex) ;;
				esac
				printf '%s\n' "$line"
			done <"$1" >"$2.new"
		)
		mv -- "$2.new" "$2"
		echo "made $2 with a new token and key"
	fi
	chmod 600 "$2"
}

# has_placeholder FILE - must the service stay down?
has_placeholder() {
	grep -q "^MCP_PUBLIC_BASE=$placeholder\$" "$1"
}

# place_apparmor FILE - only where AppArmor knows what stands in it (version 4). Return: 1 not here
place_apparmor() {
	[ -e /etc/apparmor.d/abi/4.0 ] || return 1
	if ! cmp -s "$1" /etc/apparmor.d/mcp-sandbox; then
		cp -- "$1" /etc/apparmor.d/mcp-sandbox.new
		chmod 644 /etc/apparmor.d/mcp-sandbox.new
		mv -- /etc/apparmor.d/mcp-sandbox.new /etc/apparmor.d/mcp-sandbox
	fi
	if [ -d /sys/kernel/security/apparmor ]; then
		apparmor_parser -r /etc/apparmor.d/mcp-sandbox ||
			echo "the AppArmor profile was not loaded; only sandboxes of ordinary users need it" >&2
	fi
}

drop_apparmor() {
	[ -e /etc/apparmor.d/mcp-sandbox ] || return 0
	apparmor_parser -R /etc/apparmor.d/mcp-sandbox 2>/dev/null || true
	rm -f /etc/apparmor.d/mcp-sandbox
}
